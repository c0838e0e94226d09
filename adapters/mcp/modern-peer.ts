/**
 * A server of the modern era, shared by everyone: no session, every request says who asks and what they can be asked. A
 * caller of the legacy era gets its envelope from here, and answers the server's questions without noticing.
 */
import { CODES, META, MODERN } from '../../mappings/mcp.ts';
import type { JsonObject } from '../../src/index.ts';
import { envelopeFor, toLegacyOutcome } from './eras.ts';
import { inputsTrouble, serverFrameTrouble } from './frame-rules.ts';
import { failed, isNotice, isObject, metaOf, type Notice, type Outcome, type Request } from './frames.ts';
import type { Inputs, McpLine } from './line.ts';
import type { Patience } from './patience.ts';
import type { Wire } from './south.ts';
import { restored, withToken } from './tokens.ts';

export interface ModernPeer {
  call(method: string, params: JsonObject, line: McpLine, patience: Patience): Promise<Outcome>;
  /** A message that came without the name of a request, as on a line shared by all of them. */
  message(frame: Notice): void;
}

/** What a server is told of a client, and of what it was made. */
interface Envelope {
  readonly client: JsonObject;
  readonly level: string | undefined;
  readonly envelope: JsonObject;
}

/** `wire` is opened anew when the last one is gone, and no promise when it is open; `level` is what a session of the legacy era wants to hear. */
export function createModernPeer(
  wire: () => Wire | Promise<Wire>,
  level: (line: McpLine) => string | undefined,
  nextId: () => string,
): ModernPeer {
  /** Calls under way whose callers want to hear messages: a server may send them for no other. */
  const listening = new Map<string, McpLine>();

  /** By what a client said it can be asked, which is one object for as long as its session lasts. */
  const envelopes = new WeakMap<JsonObject, Envelope>();

  function kept(line: McpLine, wanted: string | undefined): JsonObject {
    const known = envelopes.get(line.capabilities);
    if (known && known.client === line.client && known.level === wanted) return known.envelope;
    const envelope = envelopeFor(line, wanted);
    envelopes.set(line.capabilities, { client: line.client, level: wanted, envelope });
    return envelope;
  }

  return {
    message(frame) {
      const lines = [...listening.values()];
      const newest = lines.at(-1);
      // Where it could be somebody else's it is nobody's.
      if (newest && lines.every(({ principal }) => principal === newest.principal)) newest.notify(frame);
    },
    async call(method, params, line, patience) {
      const envelope = line.era === 'modern' ? { [META.version]: MODERN } : kept(line, level(line));
      const { _meta: theirs, ...asked } = params;
      let sent: JsonObject = { _meta: isObject(theirs) ? { ...theirs, ...envelope } : envelope, ...asked };
      for (;;) {
        const id = nextId();
        const token = withToken(sent, id);
        const heard = (frame: Notice | Request) => {
          patience.moved();
          const trouble = isNotice(frame) ? serverFrameTrouble(frame) : 'a server makes no requests in this revision';
          if (isNotice(frame) && !trouble) line.notify(asTheirs(restored(frame, token?.theirs), line));
          else turnedAway(frame, trouble ?? '');
        };
        const turnedAway = (frame: Notice | Request, why: string) => {
          line.refused?.(frame.method, why);
          if ('id' in frame) open.respond(frame.id, failed(CODES.methodNotFound, why)).catch(() => {});
        };
        const sending = { signal: patience.signal, heard, ...(line.headers && { headers: line.headers }) };
        const found = wire();
        const open = found instanceof Promise ? await found : found;
        if (metaOf(sent)[META.level] !== undefined) listening.set(id, line);
        let outcome: Outcome;
        try {
          outcome = await open.request(id, method, token?.params ?? sent, sending);
        } finally {
          listening.delete(id);
        }
        if ('error' in outcome || outcome.result.resultType !== 'input_required') return ended(outcome, line);
        const { inputRequests, requestState } = outcome.result;
        const questions = (isObject(inputRequests) ? inputRequests : {}) as Inputs;
        const trouble = inputsTrouble(questions, line.capabilities);
        if (trouble) {
          line.refused?.('input_required', trouble);
          return failed(CODES.internal, `the server asks for what may not be asked: ${trouble}`);
        }
        const { inputResponses, meta } = await patience.during(line.input(questions, outcome.result));
        sent = {
          ...sent,
          inputResponses,
          ...(requestState !== undefined && { requestState }),
          ...(meta && { _meta: { ...meta, ...envelope } }),
        };
      }
    },
  };
}

function ended(outcome: Outcome, line: McpLine): Outcome {
  if (line.era === 'legacy') return toLegacyOutcome(outcome);
  if ('error' in outcome || metaOf(outcome.result)[META.subscription] === undefined) return outcome;
  return { result: { ...outcome.result, _meta: { ...metaOf(outcome.result), [META.subscription]: line.id } } };
}

/** A subscription goes by the id of the request that opened it, which on each side is another. */
function asTheirs(frame: Notice, line: McpLine): Notice {
  const meta = metaOf(frame.params);
  if (meta[META.subscription] === undefined) return frame;
  if (line.era === 'modern') {
    return { ...frame, params: { ...frame.params, _meta: { ...meta, [META.subscription]: line.id } } };
  }
  const { [META.subscription]: _, ...rest } = meta;
  const { _meta: _m, ...others } = frame.params ?? {};
  const params = Object.keys(rest).length > 0 ? { ...others, _meta: rest } : others;
  const { params: _p, ...bare } = frame;
  return Object.keys(params).length > 0 ? { ...bare, params } : bare;
}
