/**
 * One handoff from beginning to end: sent once, followed by stream or by polling, with questions asked and answered, and
 * canceled when our task is. The peer's work happens elsewhere; its reports are recorded as claims.
 */
import { createHash } from 'node:crypto';
import type { Part, StreamResponse, Task } from '@a2a-js/sdk';
import { TaskNotFoundError, UnsupportedOperationError } from '@a2a-js/sdk/errors';
import { EXTENSIONS, REJECTED_CODE } from '../../../mappings/a2a.ts';
import {
  anySignal,
  type CallerReference,
  canonicalJson,
  type End,
  type Fact,
  Fault,
  type Json,
  type JsonObject,
  type Sink,
  type Work,
} from '../../../src/index.ts';
import { createCarried } from '../../../src/transport/outbound/carried.ts';
import { proofOf } from '../../../src/transport/outbound/remote-work.ts';
import { within } from '../../../src/transport/sse/silence.ts';
import { wireMessage } from '../translate.ts';
import type { BackendDeps, PeerSettings } from './config.ts';
import { endOf, isLeaving, isOver, isWaiting, whenStopped } from './end.ts';
import { isPassing, NotKnown, NotReached, unwrapped, wasNeverSent, wordsIn } from './faults.ts';
import type { Inbox } from './outgoing-messages.ts';
import type { PeerConnection } from './peer/connect.ts';
import type { Hooks } from './push-receiver.ts';
import { createWaitingPeer } from './questions/waiting-peer.ts';
import { createUpdateReader, type ReadStep, type Standing } from './read-updates.ts';
import { createActivityRecord } from './record-activity.ts';
import { digest, findAgain, messageIdOf, optionsFor, requestOf, withBytes } from './send.ts';
import { toWireInput } from './translate.ts';
import { createWaiting } from './wait.ts';

export interface RunDeps {
  readonly settings: PeerSettings;
  readonly deps: BackendDeps;
  readonly hooks: Hooks | undefined;
  readonly connection: PeerConnection;
  readonly work: Work;
  readonly sink: Sink;
  readonly signal: AbortSignal;
  /** Messages to the peer while it works. */
  readonly inbox: Inbox;
  /** Whether the peer has another address to try when this one does not have the work. */
  readonly elsewhere: boolean;
  /** The peer's context id for our session, when it has given one. */
  contextId(): Promise<string | undefined>;
  gotContext(contextId: string): void;
}

const REPORTED_ONLY = 'what the peer did inside: only its own report is known';

const LOST = 'some of what the peer did: it could not be asked about it again';

export async function hand(run: RunDeps): Promise<End> {
  const { settings, connection, work, signal, deps, hooks } = run;
  const carried = createCarried(run.sink);
  const { sink } = carried;
  const { client } = connection;
  const reader = createUpdateReader({
    taskId: work.task.id,
    peer: settings.name,
    address: settings.several ? settings.index : undefined,
    deltas: !work.resumed,
  });
  const over = new AbortController();
  const waiting = createWaiting({ settings, deps, connection, hooks, taskId: work.task.id });
  const activity = createActivityRecord({ ...run, sink }, reader, over.signal);
  const files = new Set<string>();
  let accepted = false;
  let reached = performance.now();
  let brokeOff: unknown;

  async function perform(steps: readonly ReadStep[]): Promise<void> {
    for (const step of steps) {
      if (step.do === 'emit') await sink.emit(step.fact);
      else await keep(step);
    }
  }

  /** A file may arrive as an artifact and again in the message about it. */
  async function keep(step: Extract<ReadStep, { do: 'keep' }>): Promise<void> {
    const file = await withBytes(run, step);
    const { bytes, uri, name } = file;
    const mark = `${name} ${bytes ? createHash('sha256').update(bytes).digest('hex') : uri}`;
    if (files.has(mark)) return;
    files.add(mark);
    await sink.artifact(file);
  }

  async function take(said: StreamResponse): Promise<void> {
    reached = performance.now();
    await activity.before(said);
    await perform(reader.take(said));
    await activity.after(said);
    if (!accepted && (reader.standing || reader.bare)) {
      accepted = true;
      if (reader.standing?.contextId) run.gotContext(reader.standing.contextId);
      await handoff('accepted');
    }
    run.inbox.look();
  }

  async function handoff(
    status: 'accepted' | 'rejected' | 'failed' | 'completed',
    more: JsonObject = {},
  ): Promise<void> {
    const bare = reader.bare?.messageId;
    const task_id = reader.standing?.taskId ?? (bare ? `message:${bare}` : `unsent:${work.task.id}`);
    const payload = { target_agent: settings.name, task_id, status, ...more };
    await sink.emit({ event: 'agent.handoff', payload });
  }

  const settled = () => reader.bare !== undefined || isOver(reader.standing) || isWaiting(reader.standing);

  /**
   * Reads a stream until it ends; a broken stream is noticed at the next poll of the task. A silent stream is abandoned for
   * such a poll, and is a failure where the peer has not even named its task.
   */
  async function read(open: (signal: AbortSignal) => AsyncGenerator<StreamResponse>): Promise<void> {
    const gone = new AbortController();
    const stream = open(anySignal([over.signal, gone.signal]));
    try {
      for (;;) {
        const came = await within(stream.next(), reader.standing ? settings.pushPollMs : settings.silenceMs);
        if (came === 'late') {
          if (reader.standing) return;
          throw new Fault('upstream_unavailable', 'the peer has said nothing for too long');
        }
        if (came.done) return;
        await take(came.value);
        if (settled() || over.signal.aborted) return;
      }
    } catch (cause) {
      if (over.signal.aborted || !isPassing(cause) || (!reader.standing && wasNeverSent(cause))) throw cause;
      brokeOff = cause;
      deps.log.warn({ err: cause, peer: settings.name }, 'the stream of a peer broke off');
    } finally {
      gone.abort();
      stream.return(undefined).catch(() => {});
    }
  }

  async function send(parts: Part[], messageId: string, taskId?: string, caller?: CallerReference): Promise<void> {
    const contextId = reader.standing?.contextId ?? (await run.contextId()) ?? '';
    const message = wireMessage({ messageId, parts, contextId, taskId: taskId ?? '' }, 'user');
    const streams = connection.card.capabilities?.streaming === true;
    const request = requestOf(
      message,
      !streams,
      caller && connection.extensions.has(EXTENSIONS.record) ? caller : undefined,
    );
    const options = optionsFor(connection);
    if (streams) return await read((until) => client.sendMessageStream(request, { ...options, signal: until }));
    const limit = anySignal([over.signal, AbortSignal.timeout(settings.requestMs)]);
    const came = await client.sendMessage(request, { ...options, signal: limit });
    await take({
      payload: 'messageId' in came ? { $case: 'message', value: came } : { $case: 'task', value: came as Task },
    });
  }

  async function look(how?: 'called' | 'time'): Promise<void> {
    const { taskId: id, wire: before } = reader.standing ?? {};
    if (!id) {
      const why = brokeOff === undefined ? '' : `: ${wordsIn(brokeOff)}`;
      throw new Fault('upstream_unavailable', `the peer broke off before it gave the task a name${why}`);
    }
    const limit = anySignal([over.signal, AbortSignal.timeout(settings.requestMs)]);
    try {
      await take({
        payload: {
          $case: 'task',
          value: await client.getTask({ id, tenant: '' }, { ...optionsFor(connection), signal: limit }),
        },
      });
      if (how === 'time' && reader.standing?.wire !== before) waiting.unannounced();
    } catch (cause) {
      if (!isPassing(cause)) throw cause;
      if (performance.now() - reached > settings.silenceMs) {
        throw new Fault('upstream_unavailable', 'the peer has been out of reach for too long', { cause });
      }
    }
  }

  /** Follows by stream where there is one, otherwise by polling, until the task has ended or asks. */
  async function follow(): Promise<void> {
    let streams = connection.card.capabilities?.streaming === true;
    let unknownState: { readonly wire: string; readonly since: number } | undefined;
    let how: 'called' | 'time' | undefined;
    while (!settled() && !over.signal.aborted) {
      const { taskId = '' } = reader.standing ?? {};
      if (streams && taskId) {
        try {
          await read((until) =>
            client.resubscribeTask({ id: taskId, tenant: '' }, { ...optionsFor(connection), signal: until }),
          );
        } catch (cause) {
          if (!(cause instanceof UnsupportedOperationError || cause instanceof TaskNotFoundError)) throw cause;
          streams = false;
        }
        if (settled()) return;
      }
      await look(how);
      if (settled()) return;
      const { standing } = reader;
      if (standing?.state !== undefined) unknownState = undefined;
      else if (unknownState?.wire !== standing?.wire)
        unknownState = { wire: standing?.wire ?? '', since: performance.now() };
      else if (performance.now() - unknownState!.since > settings.silenceMs) {
        throw new Fault('upstream_unavailable', `the peer stayed in a state we do not know (${standing?.wire})`);
      }
      how = await pause(over.signal, !streams);
    }
  }

  /** Waits for a notification, where the peer sends them, or for the next poll. Notifications are recorded. */
  async function pause(until: AbortSignal, byCall: boolean): Promise<'called' | 'time'> {
    if (byCall && reader.standing && (await waiting.listenFor(reader.standing.taskId))) return 'called';
    const how = await waiting.until(until, byCall);
    for (const fact of waiting.calls()) await sink.emit(fact);
    return how;
  }

  /** Sends a message to a working peer. Not every peer accepts one; a rejection is recorded. */
  async function sendMessage(message: JsonObject): Promise<void> {
    const { taskId, contextId } = reader.standing as Standing;
    if (!taskId) return await notTaken([message], 'the peer has not given the task a name');
    const messageId = `${work.task.id}.${typeof message.id === 'string' ? message.id : 'message'}`;
    try {
      const parts = await toWireInput(message, work, settings);
      const request = requestOf(wireMessage({ messageId, parts, contextId, taskId }, 'user'), true);
      const limit = anySignal([over.signal, AbortSignal.timeout(settings.requestMs)]);
      // The stream or the next poll brings the response.
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

  /** Reads the peer's state and its receipt, also after the reader has stopped. */
  async function lookOnce(ms: number): Promise<void> {
    const { taskId: id } = reader.standing ?? {};
    if (!id) return;
    const task = await client.getTask(
      { id, tenant: '' },
      {
        ...optionsFor(connection),
        signal: AbortSignal.timeout(ms),
      },
    );
    await perform(reader.take({ payload: { $case: 'task', value: task } }));
  }

  /** After a cancel: reads what the peer stopped, and its receipt. A peer that does not respond is not waited for. */
  async function lastWord(reference: CallerReference | undefined): Promise<void> {
    const limit = AbortSignal.timeout(settings.cancelMs);
    try {
      await lookOnce(settings.cancelMs);
      if (!isOver(reader.standing)) return;
      await activity.finish(limit);
      await handoff('failed', proofOf(reader.receipt, reference));
    } catch (cause) {
      deps.log.warn({ err: cause, peer: settings.name }, 'a peer did not say what it stopped');
    }
  }

  const waitingPeer = createWaitingPeer({
    run: { ...run, sink },
    reader,
    activity,
    over: over.signal,
    send,
    look,
    pause: (until) => pause(until, true),
  });
  const input = await toWireInput(work.task.input as JsonObject, work, settings);
  const reference = await work.reference?.('a2a');
  const requestHash = digest(canonicalJson(input.map((part) => wireJson(part))));
  const stopping = whenStopped(run, reader, over);
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
    const atWork = () => reader.standing !== undefined && !settled() && !over.signal.aborted;
    run.inbox.open(atWork, sendMessage);
    const found = work.resumed ? await findAgain(run) : undefined;
    if (found) await take({ payload: { $case: 'task', value: found } });
    else await send(input, messageIdOf(work), undefined, reference);
    for (;;) {
      if (over.signal.aborted) throw new Fault('client_closed', 'the work was canceled');
      const { standing } = reader;
      if (reader.bare || isOver(standing)) break;
      if (standing && isWaiting(standing)) await waitingPeer.ask(standing);
      else await follow();
    }
    await activity.finish(over.signal);
    await perform(reader.end());
    await notTaken(await run.inbox.close(), 'the work was over before the message could be given');
    const end = endOf(reader);
    if (end.state === 'COMPLETED') for (const { id, name } of waitingPeer.approved) await sink.emit(wentOn(id, name));
    // Streams only name the receipt; its hash is known only after the task has ended.
    if (reader.receipt && !reader.receipt.receipt_hash) await lookOnce(settings.requestMs).catch(() => {});
    const proof = {
      response_hash: digest(canonicalJson(reader.result())),
      ...proofOf(reader.receipt, reference),
    };
    await handoff(
      end.state === 'COMPLETED' ? 'completed' : end.failure?.code === REJECTED_CODE ? 'rejected' : 'failed',
      proof,
    );
    const loss = [...carried.loss(reader.receipt?.holds)];
    return { ...end, not_reported: activity.lost ? [REPORTED_ONLY, LOST] : [REPORTED_ONLY], loss };
  } catch (cause) {
    if (signal.aborted) {
      if (!isLeaving(signal)) await lastWord(reference);
      const loss = [...carried.loss(reader.receipt?.holds)];
      return { state: 'CANCELED', summary: 'stopped while the peer was at work', loss };
    }
    const elsewhere = run.elsewhere && !accepted;
    if (elsewhere && cause instanceof NotKnown) throw cause;
    if (elsewhere && wasNeverSent(cause)) throw new NotReached(settings, cause);
    await handoff(accepted ? 'failed' : 'rejected');
    throw unwrapped(cause, settings);
  } finally {
    activity.close();
    stopping.close();
    waiting.close();
    over.abort();
    await run.inbox.close();
  }
}

/** The end of a call that a peer asked about and does not report on: it was approved, and the peer's work was completed. */
function wentOn(tool_call_id: string, name: string): Fact {
  const output = 'approved; the peer completed its work after that, and reports nothing of this call itself';
  return { event: 'tool.completed', payload: { tool_call_id, name, status: 'ok', output } };
}

function wireJson({ content, mediaType, filename }: Part): Json {
  const value = content?.$case === 'raw' ? content.value.toString('base64') : ((content?.value ?? null) as Json);
  return { [content?.$case ?? 'none']: value, mediaType, filename };
}
