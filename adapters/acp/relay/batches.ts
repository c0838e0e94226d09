/** Batches are no part of the protocol: one that holds what must be decided is turned back whole, any other goes on. */
import type { LineVerdict } from '../../../src/wire/byte-lines.ts';
import type { OrderedWriter } from '../../../src/wire/ordered-writer.ts';
import { within } from '../shapes.ts';
import { encodeError, type Frame } from './frame.ts';

const DECIDED =
  /^(session\/(new|load|resume|fork|prompt|set_mode|set_config_option|request_permission)|fs\/|terminal\/|elicitation\/)/;

export function turnedBack(frame: Extract<Frame, { kind: 'batch' }>, back: OrderedWriter): LineVerdict {
  const decided = frame.messages.some((message) => DECIDED.test(String(within(message, 'method') ?? '')));
  if (!decided) return true;
  return () => back.send(encodeError('null', { code: -32600, message: 'one JSON-RPC object at a time' }));
}
