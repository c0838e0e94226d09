/**
 * One client over standard input and output, one frame per line, in either era: a request with an envelope is modern, every other
 * frame belongs to the single legacy session. Only protocol frames are written to the output.
 */
import { randomBytes } from 'node:crypto';
import type { Readable, Writable } from 'node:stream';
import { CODES, META, MODERN, methodRow } from '../../../../mappings/mcp.ts';
import { type Actor, anySignal, asFault, isObject, type JsonObject, type Logger } from '../../../../src/index.ts';
import { parseJson } from '../../../../src/transport/http/body.ts';
import { InFlightMap } from '../../../../src/transport/in-flight-map.ts';
import { isStrictId } from '../../../../src/transport/json-rpc/messages.ts';
import { lineWriter, readLines } from '../../../../src/transport/ndjson/ndjson.ts';
import { unlessStopped } from '../../client/timeout.ts';
import { type Frame, failed, type Id, isRequest, metaOf, type Request, readFrame } from '../../frames.ts';
import { type Caller, personOf } from '../caller.ts';
import type { EndpointHandler } from '../endpoint.ts';
import { batchTrouble, takeBatch } from './batch.ts';
import { createLegacyClientSession } from './legacy-session.ts';

export interface StdioOptions {
  readonly actor: Actor;
  /** The person who answers approvals at this client. */
  readonly person?: Actor;
  readonly handler: EndpointHandler;
  readonly log: Logger;
  readonly lineLimit: number;
  /** The session of ours the client works in. */
  readonly home?: string | undefined;
  /** Ends the connection at once. */
  readonly signal?: AbortSignal | undefined;
}

/** An input that ends this soon after a request that is not answered yet is a script's; a client that leaves closes it at any time. */
const SCRIPT_MS = 1_000;
/** How long a script's requests may take then. A signal ends them at once. */
const FINISH_MS = 30_000;

const LIMITS = { depth: 100, values: 200_000 };

/**
 * Resolves when the input has ended and no request is under way. They are aborted, except for those of a script that wrote its requests and
 * closed its input before it reads the answers; of these, the ones that wait for a person are ended with an answer that says so.
 */
export async function serveStdio(
  { input, output }: { readonly input: Readable; readonly output: Writable },
  { actor, person, handler, log, lineLimit, home, signal }: StdioOptions,
): Promise<void> {
  const write = lineWriter(output);
  /** The client has closed its end. Some clients fail on what is then still written, such as answers of requests that are aborted. */
  let left = false;
  const send = (frame: object) => {
    if (!left) void write(JSON.stringify(frame));
  };
  const id = randomBytes(18).toString('base64url');
  const session = createLegacyClientSession({
    id,
    actor,
    ...(person && { person }),
    handler,
    standalone: { send },
    log,
    home,
  });
  const flights = new InFlightMap<Id, AbortController>();
  const talking = new Set<Promise<void>>();
  /** Without those that only their client ends. */
  const finishing = new Set<Promise<void>>();
  let alone = false;
  let last: { readonly talk: Promise<void>; readonly at: number } | undefined;
  const unread = (why: string, id: Id | null) => send({ jsonrpc: '2.0', id, ...failed(CODES.parse, why) });
  const skipped = (why: string) => unread(why, null);

  async function take(frame: Frame): Promise<void> {
    if (isRequest(frame) && META.version in metaOf(frame.params)) return await modern(frame);
    if ('method' in frame && frame.method === 'notifications/cancelled') {
      flights.get(frame.params?.requestId as Id)?.abort();
    }
    const outcome = await session.receive(frame, { send });
    if (outcome) send({ jsonrpc: '2.0', id: isRequest(frame) ? frame.id : null, ...outcome });
  }

  async function takeAll(batch: readonly unknown[]): Promise<void> {
    const trouble = batchTrouble(batch, session.revision);
    if (trouble) return send({ jsonrpc: '2.0', id: null, ...failed(CODES.invalidRequest, trouble) });
    const answers = await takeBatch(batch, (frame) => session.receive(frame, { send }));
    if (answers.length > 0) send(answers);
  }

  async function modern(frame: Request): Promise<void> {
    const trouble = envelopeTrouble(metaOf(frame.params));
    if (trouble) return send({ jsonrpc: '2.0', id: frame.id, ...trouble });
    const flight = new AbortController();
    flights.begin(frame.id, flight);
    try {
      const caller = callerOf(frame, anySignal([flight.signal, session.ended]));
      const outcome = await handler.receive(frame, { ...caller, waits: () => session.waits(() => flight.abort()) });
      // A client that canceled a request expects no answer, except for the end of a subscription.
      if (!flight.signal.aborted || alone || frame.method === 'subscriptions/listen') {
        send({ jsonrpc: '2.0', id: frame.id, ...outcome });
      }
    } finally {
      flights.over(frame.id);
    }
  }

  function callerOf({ params }: Request, signal: AbortSignal): Caller {
    const meta = metaOf(params);
    const client = meta[META.client];
    return {
      actor,
      person: person ?? personOf(actor),
      era: 'modern',
      // Each start is a new client: it does not continue the session of an earlier one.
      at: id,
      capabilities: meta[META.capabilities] as JsonObject,
      client: isObject(client) ? client : {},
      home,
      headers: undefined,
      signal,
      notify: send,
    };
  }

  try {
    for await (const line of readLines(input, { limit: lineLimit, skipped })) {
      const said = valueIn(line, lineLimit);
      const frame = readFrame(said);
      if (!frame && !Array.isArray(said)) unread('Parse error: this is not a JSON-RPC message', idIn(line));
      else {
        const talk = (frame ? take(frame) : takeAll(said as unknown[])).catch((cause) =>
          log.error({ err: cause }, 'a message failed'),
        );
        const long = frame && 'method' in frame && methodRow(frame.method)?.long;
        for (const open of long ? [talking] : [talking, finishing]) {
          open.add(talk);
          talk.finally(() => open.delete(talk));
        }
        if (!frame || isRequest(frame)) last = { talk, at: performance.now() };
      }
    }
    if (input.readableEnded && last && finishing.has(last.talk) && performance.now() - last.at < SCRIPT_MS) {
      alone = true;
      session.unattended();
      const over = anySignal([AbortSignal.timeout(FINISH_MS), ...(signal ? [signal] : [])]);
      await unlessStopped(Promise.all(finishing), over).catch(() => {});
    }
  } finally {
    left = input.readableEnded;
    session.end();
    await Promise.allSettled(talking);
  }
}

function valueIn(line: string, bytes: number): unknown {
  try {
    return parseJson(Buffer.from(line), { ...LIMITS, bytes });
  } catch (thrown) {
    if (asFault(thrown).kind === 'internal') throw thrown;
    return undefined;
  }
}

/** The id of a message that is refused as a whole, so that its sender does not wait for it. */
function idIn(line: string): Id | null {
  if (line.length > LONGEST_REFUSED) return null;
  try {
    const said: unknown = JSON.parse(line);
    return isObject(said) && isStrictId(said.id) ? said.id : null;
  } catch {
    return null;
  }
}
const LONGEST_REFUSED = 64 * 1024;

function envelopeTrouble(meta: JsonObject) {
  const version = meta[META.version];
  if (version !== MODERN) {
    const data = { supported: [MODERN], requested: typeof version === 'string' ? version : '' };
    return failed(CODES.unsupportedVersion, 'Unsupported protocol version', data);
  }
  return isObject(meta[META.capabilities])
    ? undefined
    : failed(CODES.invalidParams, `_meta lacks ${META.capabilities}`);
}
