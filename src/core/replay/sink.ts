/**
 * The sink of an agent that is run again. It handles one request at a time, in the order of the agent's requests, so that the same
 * record and the same overrides always give the same log. Calls and questions are the recorded ones: a request without a recorded
 * answer is missing. Messages and cancels from outside arrive again at their recorded position.
 */
import { createHash } from 'node:crypto';
import type { NewArtifact, ToolResult } from '../../model/actions.ts';
import type { Answer } from '../../model/asks.ts';
import type { Fact, ProposedAction } from '../../model/commands.ts';
import type { CoreEvent } from '../../model/events.ts';
import type { AskClosedPayload } from '../../model/payloads.ts';
import type { Task } from '../../model/resources.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import { asText } from '../../model/values/as-text.ts';
import type { ActResult, Question, Sink } from '../../ports/index.ts';
import { whileOpen, withoutClaims } from '../events/facts.ts';
import { inTask, ours, taskLocation } from '../tasks/lifecycle.ts';
import type { RecordedAnswers } from './answers.ts';
import { evidenceOf, isAgentOutput } from './dependents.ts';
import { type MarkedLog, nameIn } from './marks.ts';
import type { Plan } from './plan.ts';
import { type PortsDeps, proposed, type ReplayPorts, resultOf } from './ports.ts';
import { shownValue } from './shown.ts';

type Requested = CoreEvent<'tool.requested'>;
type Ended = CoreEvent<'tool.completed' | 'tool.failed'>;

export interface RerunParts {
  readonly task: Task;
  readonly plan: Plan;
  readonly marked: MarkedLog;
  readonly ports: ReplayPorts;
  readonly answers: RecordedAnswers;
  /** Sends a message to the agent. */
  receive(message: JsonObject): void;
  readonly stop: AbortController;
  /** The agent is active. */
  alive(): void;
}

export interface RerunSink extends Sink {
  /** Delivers messages and cancels recorded before the agent's next output. */
  deliver(): Promise<void>;
  /** Resolves when every request is done. */
  settled(): Promise<void>;
}

export function createRerunSink(deps: PortsDeps, parts: RerunParts): RerunSink {
  const { task, plan, marked, ports, answers, receive, stop, alive } = parts;
  const { events } = answers;
  const evidence = evidenceOf(events);
  const restored = new Set(plan.restored);
  /** Output that an override removes: recognised, and not written. */
  const removed = new Set(removedBy(plan));
  const outside = plan.replayed.filter(({ event }) => event === 'user.message' || event === 'user.cancel_requested');
  const requests = new Map<string, Requested>();
  const ends = new Map<string, Ended>();
  const asked = new Map<string, CoreEvent<'vendor.tollbridge.ask_opened'>[]>();
  for (const event of events) {
    if (event.event === 'tool.requested') requests.set(asText(event.payload.tool_call_id), event);
    if (event.event === 'tool.completed' || event.event === 'tool.failed')
      ends.set(asText(event.payload.tool_call_id), event);
    if (event.event === 'vendor.tollbridge.ask_opened') {
      const { ask } = event.payload;
      const key = asText(ask.metadata.key ?? '');
      if (ask.kind === 'input' && !ask.tool_call_id) asked.set(key, [...(asked.get(key) ?? []), event]);
    }
  }
  let last: Promise<unknown> = Promise.resolve();

  /** Concurrent requests of an agent are handled in the order it began them. */
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = last.then(async () => {
      alive();
      const failed = answers.failed();
      if (failed) throw answers.missing(failed);
      const done = await work();
      await deliver();
      return done;
    });
    last = turn.catch(() => {});
    return turn;
  }

  const note = ({ id, event }: CoreEvent) =>
    marked.commit(
      whileOpen(
        task,
        [{ ...inTask(task), event: 'replay.event_replayed', payload: { original: { id, event } } }],
        true,
      ),
    );

  async function deliver(): Promise<void> {
    for (;;) {
      const next = outside[0];
      if (!next || next.sequence > nextOutput()) return;
      outside.shift();
      if (next.event === 'user.cancel_requested') {
        await note(next);
        answers.canceledBy(next);
        stop.abort();
      } else {
        const { kind, message } = answers.payloadOf(next);
        await note(next);
        if (kind === 'interrupt' && message) receive(message as JsonObject);
      }
    }
  }

  /** The position of the agent's next recorded output. Output it skipped, because it produced other, is not waited for. */
  function nextOutput(): number {
    const reached = marked.furthest()?.sequence ?? 0;
    for (const event of marked.left()) {
      if (event.sequence > reached && isAgentOutput(event, evidence)) return event.sequence;
    }
    return Number.POSITIVE_INFINITY;
  }

  function takeFrom(set: Set<CoreEvent>, { event, payload }: Fact, exact = false): CoreEvent | undefined {
    const name = nameIn(payload);
    for (const one of set) {
      if (one.event !== event || nameIn(one.payload) !== name) continue;
      // Without a name the event is matched by its payload.
      if (exact && name === null && deps.canonical(one.payload) !== deps.canonical(asClean(payload))) continue;
      set.delete(one);
      return one;
    }
    return undefined;
  }

  async function say(fact: Fact): Promise<void> {
    if (takeFrom(restored, fact)) return;
    const out = takeFrom(removed, fact, true);
    if (out) {
      answers.payloadOf(out);
      return;
    }
    await ports.sink.emit({ event: fact.event, payload: shown(fact) });
  }

  function shown(fact: Fact): JsonObject {
    const payload = withoutClaims(fact, task, { next: () => `${task.id}.file` }, marked.clock.now());
    for (const original of marked.left()) {
      if (original.event !== fact.event || nameIn(original.payload) !== nameIn(payload)) continue;
      const applied = plan.applied.find(({ dependency }) => dependency.event_id === original.id);
      // The agent's own output, replaced: the override gave it no input.
      if (applied?.override.kind === 'event_payload') return original.payload;
      if (applied?.override.kind === 'llm_provider_response') {
        return { ...answers.asShown(payload), response: shownValue(applied) };
      }
      if (applied?.override.kind === 'checkpoint_value')
        return { ...answers.asShown(payload), value: shownValue(applied) };
      break;
    }
    return answers.asShown(payload);
  }

  async function call(wanted: ProposedAction): Promise<{ request: Requested; recorded: Requested['payload'] }> {
    const name = wanted.tool ?? wanted.kind;
    const request = wanted.tool_call_id ? requests.get(wanted.tool_call_id) : await unnamed(wanted);
    const key = `host:${name}:${wanted.tool_call_id ?? ''}`;
    if (!request) throw answers.missing({ kind: 'host', id: key });
    const recorded = request.payload;
    const { server, tool_call_id } = recorded;
    if (!(await isSame(wanted, recorded))) {
      throw answers.missing({ kind: 'host', id: server ? `mcp:${server}:${tool_call_id}` : key });
    }
    return { request, recorded };
  }

  async function unnamed(wanted: ProposedAction): Promise<Requested | undefined> {
    for (const event of marked.left()) {
      if (event.event !== 'tool.requested') continue;
      if (await isSame(wanted, event.payload)) return event;
    }
    return undefined;
  }

  /** The recorded decision and result apply to this call and no other. */
  async function isSame(wanted: ProposedAction, recorded: Requested['payload']): Promise<boolean> {
    if (recorded.name !== (wanted.tool ?? wanted.kind)) return false;
    if (wanted.server && recorded.server && wanted.server !== recorded.server) return false;
    if (wanted.target && recorded.target && asClean(wanted.target) !== recorded.target) return false;
    const input = await answers.whole(recorded.input ?? {});
    return deps.canonical(asClean((wanted.arguments ?? {}) as Json)) === deps.canonical(input);
  }
  function asClean<T extends Json>(value: T): T {
    return deps.log.clean(value);
  }

  async function act(wanted: ProposedAction, bringsEffect: boolean): Promise<ActResult> {
    const { request, recorded } = await call(wanted);
    const end = ends.get(asText(recorded.tool_call_id));
    if (restored.has(request)) return await fromRestored(recorded, end);
    const outcome = await ports.sink.act(proposed(recorded), async () => {
      if (!end) {
        if (!stop.signal.aborted)
          throw answers.missing({ kind: 'host', id: `host:${recorded.name}:${recorded.tool_call_id}` });
        return STOPPED;
      }
      await factsDuring(request, end, bringsEffect);
      return resultOf(end.payload);
    });
    if (outcome.kind === 'refused' || !end) return outcome;
    return { kind: 'done', result: await resultFor(end) };
  }

  async function resultFor(end: Ended): Promise<ToolResult> {
    const result = resultOf(answers.payloadOf(end) as Ended['payload']);
    return { ...result, output: await answers.whole(result.output ?? null) };
  }

  /** Requested before the checkpoint: an end after the checkpoint is repeated, one before it is only returned. */
  async function fromRestored(recorded: Requested['payload'], end: Ended | undefined): Promise<ActResult> {
    const { tool_call_id, name } = recorded;
    const denied = events.find((e) => e.event === 'tool.denied' && e.payload.tool_call_id === tool_call_id);
    if (!end && denied) {
      const { reason = 'denied', by = 'bridge' } = denied.payload as { reason?: string; by?: string };
      return { kind: 'refused', reason, decision: { verdict: 'block', reason, engine: by } };
    }
    if (!end) throw answers.missing({ kind: 'host', id: `host:${name}:${tool_call_id}` });
    const result = await resultFor(end);
    if (!restored.has(end)) await ports.sink.emit({ event: end.event, payload: end.payload });
    return { kind: 'done', result };
  }

  /** Facts reported during the call, and those of the agent's own code for it while nothing else was in progress. */
  async function factsDuring(request: CoreEvent, end: CoreEvent, bringsEffect: boolean): Promise<void> {
    const between = events.filter(({ sequence }) => sequence > request.sequence && sequence < end.sequence);
    const alone = !between.some(({ event }) => event === 'tool.requested');
    for (const event of between) {
      const { payload, actor } = event;
      const about = payload.tool_call_id ?? payload.call_id;
      const its = about === end.payload.tool_call_id && /\.(side_effect|usage)$/.test(event.event);
      const made = event.event === 'artifact.created' && !actor;
      const words = bringsEffect && alone && actor && isAgentOutput(event, evidence);
      if (its || (alone && made) || words) await ports.sink.emit({ event: event.event, payload });
    }
  }

  async function ask(question: Question): Promise<Answer> {
    if (question.kind === 'approval') {
      const { takesArguments = false } = question;
      if (!question.action.tool_call_id) return await askAboutNoCall(question);
      const { request, recorded } = await call(question.action);
      if (restored.has(request)) throw answers.missing({ kind: 'host', id: `decision:${recorded.tool_call_id}` });
      return await ports.sink.ask({ kind: 'approval', action: proposed(recorded), takesArguments });
    }
    const { key } = question;
    const opened = asked.get(key)?.shift();
    const before = opened?.payload.ask;
    if (!opened || before?.question !== asClean(question.question)) {
      throw answers.missing({ kind: 'host', id: `answer:${key}` });
    }
    const closed = answers.closed(before.id);
    if (restored.has(opened) && closed) return answerOf(answers.payloadOf(closed) as AskClosedPayload);
    const answer = await ports.sink.ask({ kind: 'input', key, question: question.question });
    return closed && answer.kind === 'value' ? withValue(answer, answers.payloadOf(closed)) : answer;
  }

  async function askAboutNoCall(question: Extract<Question, { kind: 'approval' }>): Promise<Answer> {
    const { kind, tool } = question.action;
    const wanted = deps.canonical(asClean((question.action.arguments ?? {}) as Json));
    for (const event of marked.left()) {
      if (event.event !== 'vendor.tollbridge.decided') continue;
      const { action, decision } = event.payload;
      if (action?.tool_call_id || action?.kind !== kind || action.tool !== tool) continue;
      const recordedArguments = deps.canonical(await answers.whole((action.arguments ?? {}) as Json));
      // A question about it is identified only by a keyed digest, which another gateway cannot compare.
      if (recordedArguments !== wanted || decision.verdict === 'escalate') continue;
      answers.unnamed.push(decision);
      const { takesArguments = false } = question;
      return await ports.sink.ask({ kind: 'approval', action: question.action, takesArguments });
    }
    throw answers.missing({ kind: 'host', id: `decision:${tool ?? kind}` });
  }

  let made = 0;
  async function artifact(file: NewArtifact): Promise<{ id: string; sha256: string | null }> {
    const sha256 = file.bytes ? createHash('sha256').update(file.bytes).digest('hex') : (file.sha256 ?? null);
    const before = fileLike(file, sha256);
    const known = before?.payload.artifact;
    if (before && known) {
      if (!restored.delete(before)) await ports.sink.emit({ event: before.event, payload: before.payload });
      return { id: known.id, sha256: known.sha256 };
    }
    // A file that differs from the recorded one: recorded as an event, and not stored.
    made += 1;
    const id = `artifact_replay_${ours(task).replay?.stem ?? task.id}.f${made}`;
    const { kind, mime_type, name } = answers.asShown({
      kind: file.kind,
      mime_type: file.mime_type,
      name: file.name ?? '',
    });
    const shownHash = answers.isGuarded() ? null : sha256;
    const now = marked.clock.now();
    const whole = {
      ...{ id, object: 'artifact', created_at: now, updated_at: now, kind, mime_type, uri: null, sha256: shownHash },
      ...{
        visibility: file.visibility ?? 'public',
        metadata: { ...(name && { name }), kept: false },
        ...taskLocation(task),
      },
    };
    await ports.sink.emit({ event: 'artifact.created', payload: { artifact: whole } });
    return { id, sha256: shownHash };
  }

  function fileLike(file: NewArtifact, sha256: string | null): CoreEvent<'artifact.created'> | undefined {
    const like = (event: CoreEvent): event is CoreEvent<'artifact.created'> => {
      if (event.event !== 'artifact.created' || !event.payload.artifact) return false;
      const { kind, sha256: hash, metadata, uri } = event.payload.artifact;
      return kind === file.kind && hash === sha256 && metadata.spilled !== true && (uri ?? null) === (file.uri ?? null);
    };
    for (const event of restored) if (like(event)) return event;
    for (const event of marked.left()) if (like(event)) return event;
    return undefined;
  }

  return {
    deliver,
    async settled() {
      await last;
    },
    emit: (fact) => inTurn(() => say(fact)),
    act: (wanted, effect) => inTurn(() => act(wanted, effect !== undefined)),
    ask: (question) => inTurn(() => ask(question)),
    artifact: (file) => inTurn(() => artifact(file)),
  };
}

const STOPPED: ToolResult = { status: 'error', output: null, error: 'stopped before it ended', code: 'canceled' };

function removedBy({ applied }: Plan): CoreEvent[] {
  return applied.flatMap(({ value, dependency, override }) => {
    if (override.kind !== 'event_payload' || value !== null || !dependency.event) return [];
    return [dependency.event];
  });
}

function withValue(answer: Extract<Answer, { kind: 'value' }>, closed: JsonObject): Answer {
  return { ...answer, value: closed.answer ?? null };
}

function answerOf({ state, by, ask_id, reason, answer }: AskClosedPayload): Answer {
  if (state === 'answered') return { kind: 'value', by, ask_id, value: answer ?? null };
  if (state === 'approved') return { kind: 'approved', by, ask_id };
  if (state === 'denied') return { kind: 'denied', by, ask_id, reason: reason ?? 'declined' };
  return { kind: state === 'expired' ? 'expired' : 'canceled', ask_id, reason: reason ?? state };
}
