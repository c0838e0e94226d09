/**
 * For a harness whose `defer` means that one of its own people is looking: our approvers are asked as well, and the harness is
 * asked again in the background. The first answer counts; a decision that is neither yes nor no leaves the question to people.
 */
import {
  type Action,
  type Actor,
  type AskRecord,
  asFault,
  type Bridge,
  type CoreEvent,
  type Decision,
  type Logger,
  LruMap,
  type Row,
} from '../../../src/index.ts';
import { pause } from '../timeout.ts';

export interface Reasking {
  /** The harness deferred this act: the question about it will follow. */
  putOff(action: Action, afterMs: number): void;
  /** Receives every event, to find that question. */
  received(event: CoreEvent, bridge: Bridge): void;
}

export interface ReaskingDeps {
  readonly engine: string;
  readonly log: Logger;
  readonly closing: AbortSignal;
  ask(action: Action): Promise<Decision & { readonly retry_after_ms?: number }>;
}

/** The bounds of the interval, whatever the harness requests. */
const SHORTEST_MS = 100;
const LONGEST_MS = 60_000;
const MOST = 1_000;

export function createReasking({ engine, log, closing, ask }: ReaskingDeps): Reasking {
  const expected = new LruMap<string, { readonly action: Action; readonly afterMs: number }>(MOST);
  const actor: Actor = { id: `harness:${engine.replace(/^ahp:/, '')}`, kind: 'system', scopes: ['*'], door: 'ahp' };

  async function askAgain(bridge: Bridge, askId: string, action: Action, afterMs: number): Promise<void> {
    let wait = afterMs;
    for (;;) {
      await pause(Math.min(Math.max(wait, SHORTEST_MS), LONGEST_MS), closing);
      if (closing.aborted) return;
      const { state } = await bridge.view<AskRecord & Row>(actor, 'ask', askId);
      if (state !== 'open') return;
      const said = await ask(action);
      if (said.verdict === 'allow' || said.verdict === 'block') {
        const body = { ask_id: askId, approved: said.verdict === 'allow', reason: said.reason };
        await bridge.submit({ kind: 'ask.answer', actor, body });
        return;
      }
      if (said.verdict === 'modify') return;
      wait = said.retry_after_ms ?? LONGEST_MS;
    }
  }

  return {
    putOff(action, afterMs) {
      expected.set(keyOf(action.task_id, action.tool_call_id, action.tool), { action, afterMs });
    },
    received({ event, payload }, bridge) {
      if (event !== 'vendor.tollbridge.ask_opened') return;
      const opened = payload.ask;
      const key = keyOf(opened.task_id, opened.tool_call_id ?? undefined, opened.action.tool as string | undefined);
      const wanted = expected.get(key);
      if (!wanted) return;
      expected.delete(key);
      askAgain(bridge, opened.id, wanted.action, wanted.afterMs).catch((cause) => {
        // An approver here was first, as intended.
        if (asFault(cause).kind !== 'conflict') log.warn({ err: cause, engine }, 'a harness could not be asked again');
      });
    },
  };
}

function keyOf(taskId: string | undefined, callId: string | undefined, tool: string | undefined): string {
  return JSON.stringify([taskId ?? null, callId ?? null, tool ?? null]);
}
