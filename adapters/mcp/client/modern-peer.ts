/**
 * A server of the modern era, shared by all callers: there is no session, and every request names its client and capabilities.
 * Legacy callers get their envelope here, and answer the server's questions in the way of their era.
 */
import { CODES, META, MODERN } from '../../../mappings/mcp.ts';
import { isObject, type JsonObject } from '../../../src/index.ts';
import { envelopeFor, toLegacyOutcome } from '../compat/convert.ts';
import { inputsTrouble, serverFrameTrouble } from '../frame-rules.ts';
import { type FrameOutcome, failed, isNotice, metaOf, type Notice, type Request } from '../frames.ts';
import type { Inputs, McpRequestContext } from '../request-context.ts';
import { restored, withToken } from './progress-tokens.ts';
import type { ResponseTimeout } from './timeout.ts';
import type { Wire } from './transport/transport.ts';

export interface ModernPeer {
  call(method: string, params: JsonObject, context: McpRequestContext, timeout: ResponseTimeout): Promise<FrameOutcome>;
  /** A message that names no request, as on a connection that all requests share. */
  message(frame: Notice): void;
}

/** The envelope for a client, and the members it was made from. */
interface Envelope {
  readonly client: JsonObject;
  readonly level: string | undefined;
  readonly envelope: JsonObject;
}

/** `wire` opens a new connection when the last one has closed, and returns no promise while one is open; `level` is the log level of a legacy session. */
export function createModernPeer(
  wire: () => Wire | Promise<Wire>,
  level: (context: McpRequestContext) => string | undefined,
  nextId: () => string,
): ModernPeer {
  /** Calls under way whose callers asked for log messages: a server may send them for no other. */
  const listening = new Map<string, McpRequestContext>();

  /** Cached by the client's capabilities, which are one object for as long as its session lasts. */
  const envelopes = new WeakMap<JsonObject, Envelope>();

  function kept(context: McpRequestContext, wanted: string | undefined): JsonObject {
    const known = envelopes.get(context.capabilities);
    if (known && known.client === context.client && known.level === wanted) return known.envelope;
    const envelope = envelopeFor(context, wanted);
    envelopes.set(context.capabilities, { client: context.client, level: wanted, envelope });
    return envelope;
  }

  return {
    message(frame) {
      const contexts = [...listening.values()];
      const newest = contexts.at(-1);
      // A message that could belong to another principal's call is dropped.
      if (newest && contexts.every(({ principal }) => principal === newest.principal)) newest.notify(frame);
    },
    async call(method, params, context, timeout) {
      const envelope = context.era === 'modern' ? { [META.version]: MODERN } : kept(context, level(context));
      const { _meta: theirs, ...asked } = params;
      let sent: JsonObject = { _meta: isObject(theirs) ? { ...theirs, ...envelope } : envelope, ...asked };
      for (;;) {
        const id = nextId();
        const token = withToken(sent, id);
        const receive = (frame: Notice | Request) => {
          timeout.moved();
          const trouble = isNotice(frame) ? serverFrameTrouble(frame) : 'a server makes no requests in this revision';
          if (isNotice(frame) && !trouble) context.notify(asTheirs(restored(frame, token?.theirs), context));
          else turnedAway(frame, trouble ?? '');
        };
        const turnedAway = (frame: Notice | Request, why: string) => {
          context.refused?.(frame.method, why);
          if ('id' in frame) open.respond(frame.id, failed(CODES.methodNotFound, why)).catch(() => {});
        };
        const sending = {
          signal: timeout.signal,
          received: receive,
          ...(context.headers && { headers: context.headers }),
        };
        const found = wire();
        const open = found instanceof Promise ? await found : found;
        if (metaOf(sent)[META.level] !== undefined) listening.set(id, context);
        let outcome: FrameOutcome;
        try {
          outcome = await open.request(id, method, token?.params ?? sent, sending);
        } finally {
          listening.delete(id);
        }
        if ('error' in outcome || outcome.result.resultType !== 'input_required') return ended(outcome, context);
        const { inputRequests, requestState } = outcome.result;
        const questions = (isObject(inputRequests) ? inputRequests : {}) as Inputs;
        const trouble = inputsTrouble(questions, context.capabilities);
        if (trouble) {
          context.refused?.('input_required', trouble);
          return failed(CODES.internal, `the server asks for what may not be asked: ${trouble}`);
        }
        const { inputResponses, meta } = await timeout.during(context.input(questions, outcome.result));
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

function ended(outcome: FrameOutcome, context: McpRequestContext): FrameOutcome {
  if (context.era === 'legacy') return toLegacyOutcome(outcome);
  if ('error' in outcome || metaOf(outcome.result)[META.subscription] === undefined) return outcome;
  return { result: { ...outcome.result, _meta: { ...metaOf(outcome.result), [META.subscription]: context.id } } };
}

/** A subscription goes by the id of the request that opened it, which on each side is another. */
function asTheirs(frame: Notice, context: McpRequestContext): Notice {
  const meta = metaOf(frame.params);
  if (meta[META.subscription] === undefined) return frame;
  if (context.era === 'modern') {
    return { ...frame, params: { ...frame.params, _meta: { ...meta, [META.subscription]: context.id } } };
  }
  const { [META.subscription]: _, ...rest } = meta;
  const { _meta: _m, ...others } = frame.params ?? {};
  const params = Object.keys(rest).length > 0 ? { ...others, _meta: rest } : others;
  const { params: _p, ...bare } = frame;
  return Object.keys(params).length > 0 ? { ...bare, params } : bare;
}
