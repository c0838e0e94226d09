/**
 * JSON-RPC batches, which revision 2025-03-26 has and no other. Messages are handled concurrently, each as if it had arrived
 * alone; their answers are returned as one array.
 */
import { BATCHING, CODES, META } from '../../../../mappings/mcp.ts';
import { clientFrameTrouble } from '../../frame-rules.ts';
import {
  answerTo,
  type Frame,
  type FrameOutcome,
  failed,
  isNotice,
  isRequest,
  metaOf,
  type Response,
  readFrame,
} from '../../frames.ts';

/** More messages than any known client sends in a batch. */
const MOST = 100;

/** Why a batch is refused from this client; undefined when it is accepted. */
export function batchTrouble(batch: readonly unknown[], revision: string | undefined): string | undefined {
  if (revision !== BATCHING) {
    const here = revision === undefined ? 'no session is open' : `this session speaks ${revision}`;
    return `Batches are of revision ${BATCHING} only, and ${here}: send each message by itself`;
  }
  if (batch.length === 0) return 'Invalid Request: the batch is empty';
  return batch.length > MOST
    ? `Invalid Request: a batch holds at most ${MOST} messages, this one ${batch.length}`
    : undefined;
}

/** Whether a message in the batch expects an answer or has to be refused. */
export function asksAnything(batch: readonly unknown[]): boolean {
  return batch.some((each) => {
    const frame = readFrame(each);
    return !frame || isRequest(frame) || (isNotice(frame) && clientFrameTrouble(frame) !== undefined);
  });
}

/** The answers, in the order of the requests. */
export async function takeBatch(
  batch: readonly unknown[],
  receive: (frame: Frame) => Promise<FrameOutcome | undefined>,
): Promise<readonly Response[]> {
  const answers = await Promise.all(
    batch.map(async (each): Promise<readonly Response[]> => {
      const frame = readFrame(each);
      if (!frame) return [{ jsonrpc: '2.0', id: null, ...failed(CODES.invalidRequest, 'Invalid Request') }];
      if (!isRequest(frame)) {
        const refused = await receive(frame);
        return refused ? [{ jsonrpc: '2.0', id: null, ...refused }] : [];
      }
      const outcome =
        frame.method === 'initialize'
          ? failed(CODES.invalidRequest, 'initialize does not go into a batch')
          : META.version in metaOf(frame.params)
            ? failed(CODES.invalidRequest, 'a request of a revision without batches does not go into one')
            : await receive(frame);
      return outcome ? [answerTo(frame.id, outcome)] : [];
    }),
  );
  return answers.flat();
}
