/**
 * What a server says of a tool it does not have, in its own words. It is asked about a made-up name without arguments: the name that the
 * caller sent may be that of a tool which the server has and does not list, and no call crosses undecided.
 */
import { randomBytes } from 'node:crypto';
import { CODES } from '../../../mappings/mcp.ts';
import { asText, isObject, type JsonObject } from '../../../src/index.ts';
import { type FrameOutcome, failed } from '../frames.ts';

export async function askUnknownTool(
  { name, _meta }: JsonObject,
  call: (params: JsonObject) => Promise<FrameOutcome>,
): Promise<FrameOutcome> {
  const madeUp = `unknown_${randomBytes(8).toString('hex')}`;
  const outcome = await call({ name: madeUp, arguments: {}, ...(isObject(_meta) && { _meta }) });
  // A server that has a tool of any name has said nothing about this one. Some say it in a result that is no error.
  const text = JSON.stringify(outcome);
  const denied = text.includes(madeUp) && /unknown|not found|no such/i.test(text.replaceAll(madeUp, ''));
  const said = 'error' in outcome || outcome.result.isError === true || denied;
  if (!said) return failed(CODES.invalidParams, `Unknown tool: ${asText(name)}`);
  const written = JSON.stringify(asText(name)).slice(1, -1);
  return JSON.parse(text.replaceAll(madeUp, () => written)) as FrameOutcome;
}
