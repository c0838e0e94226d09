/** The shared JSON-RPC peer as ACP uses it: its bounds, its table of frames, its errors, its way to cancel. */
import { judgeFrame } from '../../mappings/acp.ts';
import { asFault } from '../../src/index.ts';
import { createPeer, type Peer, type PeerOptions } from '../../src/transport/json-rpc/peer.ts';
import { parseFrame } from './frame.ts';
import { toWireError } from './translate.ts';

export interface AcpPeerOptions
  extends Pick<PeerOptions, 'send' | 'request' | 'notification' | 'log' | 'strict' | 'prefix'> {
  /** The peer's side of the protocol: the table says what it may send, and in which kind of frame. */
  readonly other: 'editor' | 'agent';
}

export function createAcpPeer({ other, ...options }: AcpPeerOptions): Peer {
  return createPeer({
    ...options,
    parse: parseFrame,
    cancel: '$/cancel_request',
    refuses(kind, method) {
      const judged = judgeFrame(other, kind, method);
      return judged.handling === 'refuse' ? judged.reason : undefined;
    },
    errorOf(thrown, method) {
      const fault = asFault(thrown);
      if (fault.kind === 'internal') options.log.error({ err: fault.cause ?? fault, method }, 'a call failed');
      return toWireError(fault);
    },
  });
}
