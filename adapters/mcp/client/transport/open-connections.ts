/**
 * The open connections of one server: each is known from the moment it is opened, also while it has not been answered yet, so that
 * closing waits for no server; a server that is a program may be limited to so many of them.
 */
import { Fault, type Logger } from '../../../../src/index.ts';
import type { OpenedWire } from '../legacy-session.ts';
import type { Transport } from './create-transport.ts';

export interface OpenConnections {
  /** The same transport, whose connections are known here. */
  readonly transport: Transport;
  /** Programs that run, and those that were not started because of the limit. */
  programs(): { readonly running: number; readonly refused: number };
  requireOpen(): void;
  /** Closes all of them; none can be opened from then on. */
  close(): Promise<void>;
}

interface OpenConnectionsDeps {
  /** The name of the server. */
  readonly name: string;
  readonly maxChildren: number | undefined;
  readonly log: Logger;
}

export function trackConnections(
  found: Transport,
  { name, maxChildren: most, log }: OpenConnectionsDeps,
): OpenConnections {
  const wires = new Set<OpenedWire>();
  let closed = false;
  /** Connections that are being opened. */
  let starting = 0;
  let refused = 0;

  function requireOpen(): void {
    if (closed) throw new Fault('unavailable', `${name} is closed`);
  }

  /** A program that is still starting counts as well. */
  function requireRoom(): void {
    if (most === undefined || wires.size + starting < most) return;
    refused += 1;
    const remedy = 'end sessions, raise max_children, or let sessions share one program (share: true)';
    throw new Fault('rate_limited', `${name} runs ${most} programs already, which is its limit here: ${remedy}`);
  }

  const transport: Transport = {
    ...found,
    async open(opened, unasked) {
      if (found.kind === 'stdio') requireRoom();
      starting += 1;
      let wire: OpenedWire;
      try {
        wire = await found.open(opened, unasked);
        wires.add(wire);
      } finally {
        starting -= 1;
      }
      if (closed) {
        wires.delete(wire);
        await wire.close();
        requireOpen();
      }
      // A program that has exited still counts as running, and its own children keep running, until the connection is closed.
      void wire.gone
        .then(
          () => (found.kind === 'stdio' ? wire.close() : undefined),
          () => {},
        )
        .catch((cause) => log.error({ err: cause, server: name }, 'a tool server was not ended'))
        .finally(() => wires.delete(wire));
      return wire;
    },
  };

  return {
    transport,
    programs: () => ({ running: wires.size, refused }),
    requireOpen,
    async close() {
      closed = true;
      await Promise.allSettled([...wires].map((wire) => wire.close()));
    },
  };
}
