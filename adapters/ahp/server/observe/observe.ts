/**
 * Notifications of agents, recorded as facts about their task, in order. Nothing is concluded beyond the report itself: a
 * result without its question is `observed`, and the end is the agent's claim.
 */

import {
  type Actor,
  asFault,
  type Bridge,
  type Deps,
  type Fact,
  type JsonObject,
  vendorEvent,
} from '../../../../src/index.ts';
import type { AhpSettings } from '../../config.ts';
import { type AhpEvent, readCall, viaOf } from '../../translate.ts';
import { extOf, openingOf, says } from '../event-members.ts';
import { PROTOCOL_NAME, type Runs, type SupervisedRun } from '../supervised-tasks.ts';
import { createContracts } from './contracts.ts';
import { createEndings, LEFT } from './endings.ts';
import { callEnded, ended, isSameResponse, members, text, usageOf } from './read-reports.ts';

export interface Observer {
  take(event: AhpEvent, actor: Actor, framework?: string): Promise<void>;
  /** Ends those of these runs that have not reported their end: their agent has disconnected. */
  left(runs: readonly SupervisedRun[]): Promise<void>;
  /** The same for runs that were silent since then; sessions without an agent are closed. */
  away(since: number): Promise<void>;
  /** Ends runs that reported their end and were only waiting for check results. */
  settle(): Promise<void>;
}

export interface ObserverDeps {
  readonly bridge: Bridge;
  readonly runs: Runs;
  readonly settings: AhpSettings;
  readonly deps: Pick<Deps, 'log' | 'clock' | 'ids'>;
}

const HEARTBEAT_MS = 60_000;
/** Reports of past work, which begin nothing. */
const NEWS = new Set(['post_action', 'post_response', 'success', 'error', 'heartbeat']);

const CONTRACTS = new Set(['run_lifecycle', 'task_list', 'verification']);

export function createObserver({ bridge, runs, settings, deps }: ObserverDeps): Observer {
  const endings = createEndings(runs, settings, deps);
  const contracts = createContracts({ runs, endings, deps, report });

  async function report(run: SupervisedRun, event: AhpEvent, facts: readonly Fact[]): Promise<void> {
    if (facts.length === 0) return;
    const ext = extOf(event);
    const withExt = facts.map((fact, index) => (index === 0 ? { ...fact, ext } : fact));
    const body = { task_id: run.taskId, facts: withExt };
    await bridge.submit({ kind: 'task.report', actor: run.actor, body });
  }

  const handlers: Partial<Record<AhpEvent['event_type'], (run: SupervisedRun, event: AhpEvent) => Promise<void>>> = {
    async session_start(run, { payload }) {
      const { model_provider: provider, model_name: model } = members(payload);
      if (typeof provider === 'string' && typeof model === 'string') run.model = { provider, model };
    },

    async post_action(run, event) {
      const payload = members(event.payload);
      if (typeof payload.response_text === 'string') return await response(run, event, payload);
      const facts = callEnded(run, event, deps);
      run.failure = undefined;
      await report(run, event, facts);
    },

    async post_response(run, event) {
      await response(run, event, members(event.payload));
    },

    async success(run, event) {
      const { action_summary = null, action_type = null, duration_ms = null } = members(event.payload);
      run.failure = undefined;
      const span = { id: deps.ids.next('span'), kind: 'action', name: action_type };
      await report(run, event, [{ event: 'span.completed', payload: { span, summary: action_summary, duration_ms } }]);
    },

    async error(run, event) {
      const payload = members(event.payload);
      const message = text(payload.error_message) ?? text(payload.message) ?? text(payload.error) ?? 'an error';
      const type = text(payload.error_type) ?? 'error';
      const named = readCall(event.payload).tool;
      const call = named === 'unknown' ? undefined : run.open.takeOnly(named);
      run.failure = message;
      const span = { id: deps.ids.next('span'), kind: 'error', name: type };
      await report(run, event, [
        { event: 'span.failed', payload: { span, error: message } },
        ...(call ? [ended(call, { status: 'error', error: message })] : []),
      ]);
    },

    async heartbeat(run, event) {
      const now = Date.parse(deps.clock.now());
      if (now - run.heartbeatAt < HEARTBEAT_MS) return;
      run.heartbeatAt = now;
      await report(run, event, [{ event: vendorEvent('vendor.ahp.heartbeat'), payload: members(event.payload) }]);
    },
  };

  async function response(run: SupervisedRun, event: AhpEvent, payload: JsonObject): Promise<void> {
    const said = text(payload.response_text) ?? text(payload.response) ?? text(payload.text) ?? text(payload.content);
    run.spans = Math.max(run.spans, 1);
    const call_id = `${run.taskId}.llm${run.spans}`;
    const span = { id: `${run.taskId}.span${run.spans}`, kind: 'llm', call_id };
    const usage = usageOf(payload, run, call_id);
    run.failure = undefined;
    const before = run.said;
    run.said = {
      by: event.event_type,
      span: run.spans,
      text: said ?? '',
      usage: JSON.stringify(payload.usage ?? null),
    };
    if (before && isSameResponse(before, run.said)) {
      const counted = before.usage !== 'null' || !usage;
      return counted ? undefined : await report(run, event, [{ event: 'vendor.tollbridge.usage', payload: usage }]);
    }
    await report(run, event, [
      ...(said ? [{ event: 'agent.message' as const, payload: says('assistant', said) }] : []),
      { event: 'span.completed', payload: { span, ...(run.model && { model: run.model }) } },
      ...(usage ? [{ event: 'vendor.tollbridge.usage' as const, payload: usage }] : []),
    ]);
  }

  /** Reports about a run whose receipt is sealed: the end of a call is recorded beside it, under that call. */
  async function afterwards(run: SupervisedRun, actor: Actor, event: AhpEvent): Promise<void> {
    const isCall = event.event_type === 'post_action' && typeof members(event.payload).response_text !== 'string';
    if (!isCall) return await ignored(actor, event);
    const facts = callEnded(run, event, deps);
    if (facts.length === 0) return;
    const ext = extOf(event);
    const withExt = facts.map((fact, index) => (index === 0 ? { ...fact, ext } : fact));
    const body = { task_id: run.taskId, facts: withExt, late: true };
    await bridge.submit({ kind: 'task.report', actor: run.actor, body });
  }

  /** A report about an ended run: its receipt is sealed, so this is recorded beside it. */
  async function ignored(actor: Actor, event: AhpEvent): Promise<void> {
    const session = await runs.sessionOf(actor, event.session_id);
    await bridge.submit({
      kind: 'passthrough',
      actor,
      body: {
        protocol: PROTOCOL_NAME,
        method: `ignored ${event.event_type}`,
        params: event.payload,
        workspace_id: await runs.workspace(actor),
        ...(session && { session_id: session }),
      },
      ext: extOf(event),
    });
  }

  async function take(event: AhpEvent, actor: Actor, framework?: string): Promise<void> {
    // A notification of ours that came back through another harness: recording it again would loop for ever.
    if (viaOf(event.metadata).includes(settings.hop)) return;
    await runs.inOrder(actor, event, async () => {
      if (event.event_type === 'session_end') return await endings.sessionEnd(actor, event);
      if (CONTRACTS.has(event.event_type)) {
        if (!(await contracts.take(actor, event, framework))) await ignored(actor, event);
        return;
      }
      const over = NEWS.has(event.event_type) ? runs.justEnded(actor, event) : undefined;
      if (over) return await afterwards(over, actor, event);
      const run = await runs.open(actor, event, openingOf(event, framework));
      try {
        await handlers[event.event_type]?.(run, event);
      } catch (cause) {
        // Another actor ended its task; later reports change nothing.
        if (asFault(cause).kind !== 'conflict') throw cause;
        await ignored(actor, event);
      }
    });
  }

  return {
    take,
    async left(gone) {
      for (const run of gone) await runs.inOrder(run.actor, run, () => endings.finish(run, run.ending?.end ?? LEFT));
    },
    async away(since) {
      for (const run of runs.all()) {
        const { actor, session_id } = run;
        if (run.receivedAt >= since) continue;
        await runs.inOrder(actor, run, async () => {
          // It may have returned meanwhile.
          if (run.receivedAt >= since || run.ending) return;
          await endings.finish(run, LEFT);
          if (runs.ofSession(actor, session_id).length === 0) await runs.closeSession(actor, session_id);
        });
      }
    },
    async settle() {
      for (const run of runs.all()) {
        const end = run.ending?.end;
        if (end) await runs.inOrder(run.actor, run, () => endings.finish(run, end));
      }
    },
  };
}
