/**
 * One handoff from beginning to end: given once, followed by stream or by looking, asked and answered, stopped when we are
 * stopped. What the peer did it did elsewhere; its word for it is written down as its word.
 */
import { createHash } from 'node:crypto';
import type { Part, StreamResponse, Task } from '@a2a-js/sdk';
import { A2AError, TaskNotFoundError, UnsupportedOperationError } from '@a2a-js/sdk/errors';
import { REJECTED_CODE } from '../../mappings/a2a.ts';
import { canonicalJson, type End, Fault, type Json, type JsonObject, type Sink, type Work } from '../../src/index.ts';
import type { BackendDeps, PeerSettings } from './client-config.ts';
import type { Connection } from './client-connect.ts';
import { endOf, isOver, isWaiting, whenStopped } from './client-ending.ts';
import { isPassing, unwrapped } from './client-faults.ts';
import type { Inbox } from './client-inbox.ts';
import { settle } from './client-questions.ts';
import { createReading, type Deed, type Standing } from './client-reading.ts';
import { findAgain, messageIdOf, optionsFor, requestOf, withBytes } from './client-sending.ts';
import { toWireInput } from './client-translate.ts';
import { createWaiting } from './client-waiting.ts';
import { wireMessage } from './translate.ts';

export interface RunDeps {
  readonly settings: PeerSettings;
  readonly deps: BackendDeps;
  readonly connection: Connection;
  readonly work: Work;
  readonly sink: Sink;
  readonly signal: AbortSignal;
  /** What is said to it while it works. */
  readonly inbox: Inbox;
  /** The peer's name for our session, when it has given one. */
  contextId(): Promise<string | undefined>;
  gotContext(contextId: string): void;
}

const TOLD_ONLY = 'what the peer did inside: it is only known as it told it';

export async function hand(run: RunDeps): Promise<End> {
  const { settings, connection, work, sink, signal, deps } = run;
  const { client } = connection;
  const reading = createReading({ taskId: work.task.id, peer: settings.name, deltas: !work.resumed });
  const over = new AbortController();
  const waiting = createWaiting({ settings, deps, connection, taskId: work.task.id });
  let accepted = false;
  let reached = performance.now();

  async function perform(deeds: readonly Deed[]): Promise<void> {
    for (const deed of deeds) {
      if (deed.do === 'emit') await sink.emit(deed.fact);
      else await sink.artifact(await withBytes(run, deed));
    }
  }

  async function take(said: StreamResponse): Promise<void> {
    reached = performance.now();
    await perform(reading.take(said));
    if (!accepted && (reading.standing || reading.bare)) {
      accepted = true;
      if (reading.standing?.contextId) run.gotContext(reading.standing.contextId);
      await handoff('accepted');
    }
    run.inbox.look();
  }

  async function handoff(
    status: 'accepted' | 'rejected' | 'failed' | 'completed',
    more: JsonObject = {},
  ): Promise<void> {
    const bare = reading.bare?.messageId;
    const task_id = reading.standing?.taskId ?? (bare ? `message:${bare}` : `unsent:${work.task.id}`);
    const payload = { target_agent: settings.name, task_id, status, ...more };
    await sink.emit({ event: 'agent.handoff', payload });
  }

  const settled = () => reading.bare !== undefined || isOver(reading.standing) || isWaiting(reading.standing);

  /** Reads a stream as far as it goes; that it broke is for whoever looks next. */
  async function read(stream: AsyncGenerator<StreamResponse>): Promise<void> {
    try {
      for await (const said of stream) {
        await take(said);
        if (settled() || over.signal.aborted) return;
      }
    } catch (cause) {
      if (over.signal.aborted || !isPassing(cause)) throw cause;
      deps.log.warn({ err: cause, peer: settings.name }, 'the stream of a peer broke off');
    } finally {
      await stream.return(undefined).catch(() => {});
    }
  }

  async function send(parts: Part[], messageId: string, taskId?: string): Promise<void> {
    const contextId = reading.standing?.contextId ?? (await run.contextId()) ?? '';
    const message = wireMessage({ messageId, parts, contextId, taskId: taskId ?? '' }, 'user');
    const streams = connection.card.capabilities?.streaming === true;
    const request = requestOf(message, !streams);
    const options = optionsFor(connection);
    if (streams) return await read(client.sendMessageStream(request, { ...options, signal: over.signal }));
    const limit = AbortSignal.any([over.signal, AbortSignal.timeout(settings.requestMs)]);
    const came = await client.sendMessage(request, { ...options, signal: limit });
    await take({
      payload: 'messageId' in came ? { $case: 'message', value: came } : { $case: 'task', value: came as Task },
    });
  }

  async function look(how?: 'called' | 'time'): Promise<void> {
    const { taskId: id, wire: before } = reading.standing ?? {};
    if (!id) throw new Fault('upstream_unavailable', 'the peer broke off before it gave the task a name');
    const limit = AbortSignal.any([over.signal, AbortSignal.timeout(settings.requestMs)]);
    try {
      await take({ payload: { $case: 'task', value: await client.getTask({ id, tenant: '' }, { signal: limit }) } });
      if (how === 'time' && reading.standing?.wire !== before) waiting.unannounced();
    } catch (cause) {
      if (!isPassing(cause)) throw cause;
      if (performance.now() - reached > settings.silenceMs) {
        throw new Fault('upstream_unavailable', 'the peer has been out of reach for too long', { cause });
      }
    }
  }

  /** By stream where there is one, by looking from time to time otherwise, until it has ended or asks. */
  async function follow(): Promise<void> {
    let streams = connection.card.capabilities?.streaming === true;
    let stranger: { readonly wire: string; readonly since: number } | undefined;
    let how: 'called' | 'time' | undefined;
    while (!settled() && !over.signal.aborted) {
      const { taskId = '' } = reading.standing ?? {};
      if (streams && taskId) {
        try {
          await read(client.resubscribeTask({ id: taskId, tenant: '' }, { signal: over.signal }));
        } catch (cause) {
          if (!(cause instanceof UnsupportedOperationError || cause instanceof TaskNotFoundError)) throw cause;
          streams = false;
        }
        if (settled()) return;
      }
      await look(how);
      if (settled()) return;
      const { standing } = reading;
      if (standing?.state !== undefined) stranger = undefined;
      else if (stranger?.wire !== standing?.wire) stranger = { wire: standing?.wire ?? '', since: performance.now() };
      else if (performance.now() - stranger!.since > settings.silenceMs) {
        throw new Fault('upstream_unavailable', `the peer stayed in a state we do not know (${standing?.wire})`);
      }
      how = await pause(over.signal, !streams);
    }
  }

  /** Until the peer calls, where it can, or it is time to look. What it called about is on record. */
  async function pause(until: AbortSignal, byCall: boolean): Promise<'called' | 'time'> {
    if (byCall && reading.standing && (await waiting.listenFor(reading.standing.taskId))) return 'called';
    const how = await waiting.until(until, byCall);
    for (const fact of waiting.calls()) await sink.emit(fact);
    return how;
  }

  /** A word in between. Not every peer takes one; then the record says so. */
  async function tell(message: JsonObject): Promise<void> {
    const { taskId, contextId } = reading.standing as Standing;
    const messageId = `${work.task.id}.${typeof message.id === 'string' ? message.id : 'message'}`;
    try {
      const parts = await toWireInput(message, work, settings);
      const request = requestOf(wireMessage({ messageId, parts, contextId, taskId }, 'user'), true);
      const limit = AbortSignal.any([over.signal, AbortSignal.timeout(settings.requestMs)]);
      // What comes of it is told by the stream, or seen at the next look.
      await client.sendMessage(request, { ...optionsFor(connection), signal: limit });
    } catch (cause) {
      deps.log.warn({ err: cause, peer: settings.name }, 'a peer did not take a message');
      if (!over.signal.aborted) await notTaken([message], 'the peer did not take a message while it works');
    }
  }

  async function notTaken(messages: readonly JsonObject[], why: string): Promise<void> {
    for (const { id = null } of messages) {
      const payload = { code: 'message_not_taken', message: why, message_id: id };
      await sink.emit({ event: 'vendor.tollbridge.note', payload });
    }
  }

  /** Asks our people; meanwhile the peer may have been answered by its own. */
  async function ask(standing: Standing): Promise<void> {
    const movedOn = new AbortController();
    const watching = watch(standing, AbortSignal.any([over.signal, movedOn.signal]));
    try {
      const next = await Promise.race([settle(standing, settings.name, sink), watching]);
      if (next === 'moved' || over.signal.aborted) return;
      if (next.do === 'stop') {
        await client.cancelTask({ id: standing.taskId, tenant: '', metadata: undefined }).catch(() => {});
        throw new Fault('permission_denied', next.reason);
      }
      if (next.do === 'reply') await reply(next.parts, standing);
      else await leave(standing);
    } finally {
      movedOn.abort();
      await watching.catch(() => {});
    }
  }

  async function reply(parts: Part[], { taskId, mark }: Standing): Promise<void> {
    let refused: unknown;
    try {
      await send(parts, `${work.task.id}.answer.${digest(mark).slice(7, 19)}`, taskId);
    } catch (cause) {
      // Someone on its side may have been quicker; if it still waits, it does not want this answer.
      if (!(cause instanceof A2AError)) throw cause;
      refused = cause;
      await look();
    }
    const { standing } = reading;
    if (!standing || !isWaiting(standing) || standing.mark !== mark) return;
    if (refused) throw refused;
    await leave(standing);
  }

  /** Until the peer has left the state it waits in. */
  async function leave(standing: Standing): Promise<void> {
    await watch(standing, over.signal);
  }

  async function watch(standing: Standing, until: AbortSignal): Promise<'moved'> {
    while (!until.aborted) {
      const how = await pause(until, true);
      if (until.aborted) break;
      await look(how);
      if (!isWaiting(reading.standing) || reading.standing?.mark !== standing.mark) return 'moved';
    }
    return 'moved';
  }

  const input = await toWireInput(work.task.input as JsonObject, work, settings);
  const requestHash = digest(canonicalJson(input.map((part) => wireJson(part)) as unknown as Json));
  const stopping = whenStopped(run, reading, over);
  try {
    await sink.emit({
      event: 'vendor.tollbridge.side_effect',
      payload: {
        type: 'network',
        destination: settings.base.host,
        purpose: `a2a handoff to ${settings.name}`,
        metadata: {
          request_hash: requestHash,
          card_hash: connection.cardHash,
          card: connection.verified ? 'verified' : 'not verified',
          interface: `${connection.binding} ${connection.version}`,
        },
      },
    });
    const atWork = () => reading.standing !== undefined && !settled() && !over.signal.aborted;
    run.inbox.open(atWork, tell);
    const found = work.resumed ? await findAgain(run) : undefined;
    if (found) await take({ payload: { $case: 'task', value: found } });
    else await send(input, messageIdOf(work));
    for (;;) {
      if (over.signal.aborted) throw new Fault('client_closed', 'the work was told to stop');
      const { standing } = reading;
      if (reading.bare || isOver(standing)) break;
      if (standing && isWaiting(standing)) await ask(standing);
      else await follow();
    }
    await perform(reading.end());
    await notTaken(await run.inbox.close(), 'the work was over before the message could be given');
    const end = endOf(reading);
    const proof = {
      response_hash: digest(canonicalJson(reading.result())),
      ...(reading.receiptId && { receipt_id: reading.receiptId }),
    };
    await handoff(
      end.state === 'COMPLETED' ? 'completed' : end.failure?.code === REJECTED_CODE ? 'rejected' : 'failed',
      proof,
    );
    return { ...end, not_reported: [TOLD_ONLY] };
  } catch (cause) {
    if (signal.aborted) return { state: 'CANCELED', summary: 'stopped while the peer was at work' };
    await handoff(accepted ? 'failed' : 'rejected');
    throw unwrapped(cause);
  } finally {
    stopping.close();
    waiting.close();
    over.abort();
    await run.inbox.close();
  }
}

function digest(text: string): string {
  return `sha256:${createHash('sha256').update(text).digest('hex')}`;
}

function wireJson({ content, mediaType, filename }: Part): Json {
  const value = content?.$case === 'raw' ? content.value.toString('base64') : ((content?.value ?? null) as Json);
  return { [content?.$case ?? 'none']: value, mediaType, filename };
}
