/**
 * Several messages in one, which 2025-03-26 has and no other revision. Each is taken as if it had come by itself, and all of them at
 * once; what they come to goes back together.
 */
import { BATCHING, CODES, META } from '../../mappings/mcp.ts';
import { clientFrameTrouble } from './frame-rules.ts';
import {
  answerTo,
  type Frame,
  failed,
  isNotice,
  isRequest,
  metaOf,
  type Outcome,
  type Response,
  readFrame,
} from './frames.ts';

/** More at once than any client has to say; what is left to be said comes in another. */
const MOST = 100;

/** Why a batch is not taken from this client; undefined when it is. */
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

/** Whether anything in it wants an answer, or has to be refused. */
export function asksAnything(batch: readonly unknown[]): boolean {
  return batch.some((each) => {
    const frame = readFrame(each);
    return !frame || isRequest(frame) || (isNotice(frame) && clientFrameTrouble(frame) !== undefined);
  });
}

/** The answers, in the order of what they answer. */
export async function takeBatch(
  batch: readonly unknown[],
  receive: (frame: Frame) => Promise<Outcome | undefined>,
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
