/**
 * Asks several engines and returns the strictest answer. An engine that throws, answers nonsense or does not answer in time has
 * not allowed the act. The chain never waits longer than its time limit, even for an engine that ignores its signal.
 */
import type { Action, Decision, ToolResult } from '../model/actions.ts';
import type { JsonObject } from '../model/schema.ts';
import type { Verdict } from '../model/words.ts';
import type { PolicyEngine } from '../ports/index.ts';
import { checked } from './answer.ts';
import type { NamedValue } from './context.ts';
import { block, isPure, type PureEngine, stricter } from './engine.ts';
import { changedPaths, overlap } from './merge-patch.ts';
import { SHADOW } from './persona.ts';
import { SOFT_LIMIT } from './quota.ts';
import type { RememberedAnswers } from './remembered.ts';

const NAME = 'chain';
const DEFAULT_TIMEOUT_MS = 5_000;
const NONE_REMEMBERED = { size: () => 0, amended: async (_: Action, decision: Decision) => decision };
/** Verdicts whose `arguments` count: the rewritten call runs, or is what the approver is asked about. */
const REWRITES: readonly Verdict[] = ['modify', 'escalate'];

export interface ChainDeps {
  /** In the order they are asked: persona, quotas, rules, then external harnesses. A function is called for each decision. */
  readonly engines: readonly PolicyEngine[] | (() => readonly PolicyEngine[]);
  /** Time limit for all engines together. */
  readonly timeoutMs?: number;
  /** Answers that approvers asked to be remembered, applied to the strictest answer while there are any. */
  readonly remembered?: Pick<RememberedAnswers, 'size' | 'amended'>;
}

export interface PolicyChain extends PolicyEngine {
  /** Undefined while an external engine or a remembered answer takes part. */
  judge(action: Action): Decision | undefined;
  inputs(action: Action): readonly NamedValue[];
}

export function createPolicyChain({
  engines: sources,
  timeoutMs = DEFAULT_TIMEOUT_MS,
  remembered = NONE_REMEMBERED,
}: ChainDeps): PolicyChain {
  const current = typeof sources === 'function' ? sources : () => sources;
  /** Engines are asked one after the other, so the extra time they declare adds up. */
  const totalExtraTimeMs = () => current().reduce((sum, { extraTimeMs = 0 }) => sum + extraTimeMs, 0);
  return {
    name: NAME,
    get extraTimeMs() {
      return totalExtraTimeMs();
    },
    judge(action) {
      const engines = current();
      if (remembered.size() > 0 || !engines.every(isPure)) return undefined;
      const poll = openPoll(action);
      for (const engine of engines) if (!poll.accept(engine, askPure(engine, poll.current()))) break;
      return poll.answer(engines);
    },
    async decide(action, signal, withinMs = Number.POSITIVE_INFINITY) {
      const engines = current();
      const poll = openPoll(action);
      // Rules answer synchronously and are parsed at first use; that must not count against other engines, so the clock starts
      // with the first engine that has to be awaited.
      let deadline: number | undefined;
      for (const [at, engine] of engines.entries()) {
        let said: unknown;
        if (isPure(engine)) said = askPure(engine, poll.current());
        else {
          deadline ??= performance.now() + Math.min(withinMs, Math.max(timeoutMs, totalExtraTimeMs()));
          const share = shareOf(engines, at, deadline - performance.now());
          said = await ask(engine, poll.current(), signal, share);
        }
        if (!poll.accept(engine, said)) break;
      }
      const decision = poll.answer(engines);
      return remembered.size() === 0 ? decision : await remembered.amended(action, decision);
    },
    inspect(action, result) {
      const looking = current().filter(({ inspect }) => inspect !== undefined);
      return looking.length === 0 ? result : inspectedBy(looking, action, result);
    },
    inputs: (action) => current().flatMap((engine) => (engine as Partial<PureEngine>).inputs?.(action) ?? []),
  };
}

async function inspectedBy(engines: readonly PolicyEngine[], action: Action, result: ToolResult): Promise<ToolResult> {
  let seen = result;
  for (const engine of engines) seen = (await engine.inspect?.(action, seen)) ?? seen;
  return seen;
}

/**
 * An engine that does not answer must not use up the time of those after it: where there is less time than all of them would
 * take, each gets its share of the rest.
 */
function shareOf(engines: readonly PolicyEngine[], at: number, leftMs: number): number {
  const { extraTimeMs: own = 0 } = engines[at] as PolicyEngine;
  let wanted = 0;
  for (let next = at; next < engines.length; next += 1) wanted += engines[next]?.extraTimeMs ?? 0;
  return own === 0 || wanted <= leftMs ? leftMs : (leftMs * own) / wanted;
}

interface Poll {
  /** The act with the rewrites of the engines asked so far. */
  current(): Action;
  /** Returns false when no further engine needs to be asked. */
  accept(engine: PolicyEngine, said: unknown): boolean;
  answer(engines: readonly PolicyEngine[]): Decision;
}

/** Collects the engines' answers about one act, in turn, and derives the decision. */
function openPoll(action: Action): Poll {
  const said: Decision[] = [];
  let current = action;
  let shadowed: Decision | undefined;
  return {
    current: () => current,
    accept(engine, answered) {
      const decision = checked(engine, answered);
      if (isShadow(engine, decision) && !shadowed) {
        // Nothing will run, but the answers of the other engines are the purpose of a shadow tier.
        shadowed = decision;
        return decision.would_be !== 'block';
      }
      said.push(decision);
      if (decision.verdict === 'block') return false;
      if (decision.arguments !== undefined && REWRITES.includes(decision.verdict)) {
        if (clashes(action, current, decision.arguments)) {
          said.push(clash(engine.name));
          return false;
        }
        // Later engines judge the act that would run, not the one first proposed.
        current = { ...current, arguments: decision.arguments };
      }
      return true;
    },
    answer(engines) {
      const answer = shadowed ? inShadow(shadowed, said) : combine(said, action, current);
      return withVersion(answer, said, engines);
    },
  };
}

/** Engines that have to be awaited get a signal of their own, and are abandoned when it fires. */
async function ask(engine: PolicyEngine, action: Action, signal: AbortSignal, msLeft: number): Promise<unknown> {
  if (signal.aborted || msLeft <= 0) return late(engine, action);
  return await askOutside(engine, action, signal, msLeft).catch(() => failed(engine.name));
}

function askPure(engine: PureEngine, action: Action): unknown {
  try {
    return engine.judge(action);
  } catch {
    return failed(engine.name);
  }
}

/** The cause may quote arguments, and the reason is shown to people and logged, so it leaves the cause out. */
function failed(name: string): Decision {
  return block(name, 'policy_error', `${name} failed while deciding, which counts as no`);
}

function askOutside(engine: PolicyEngine, action: Action, signal: AbortSignal, msLeft: number): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const own = new AbortController();
    const settle = (finish: () => void) => {
      clearTimeout(timer);
      signal.removeEventListener('abort', giveUp);
      finish();
    };
    const giveUp = () => {
      own.abort();
      settle(() => resolve(late(engine, action)));
    };
    const timer = setTimeout(giveUp, msLeft);
    signal.addEventListener('abort', giveUp, { once: true });
    // Inside an async function, so that a synchronous throw of the engine is caught here too.
    (async () => engine.decide(action, own.signal, msLeft))().then(
      (answer) => settle(() => resolve(answer)),
      (cause) => settle(() => reject(cause)),
    );
  });
}

function late(engine: PolicyEngine, action: Action): Decision {
  const { name } = engine;
  return (
    engine.unanswered?.(action) ?? block(name, 'policy_timed_out', `${name} did not answer in time, which counts as no`)
  );
}

function isShadow(engine: PolicyEngine, { verdict, code }: Decision): boolean {
  return verdict === 'block' && code === SHADOW && isPure(engine);
}

/** Rewrites of different members are combined; two rewrites of the same member need an approver. */
function clashes(asked: Action, current: Action, next: JsonObject): boolean {
  if (current === asked || current.arguments === asked.arguments) return false;
  return overlap(changedPaths(asked.arguments, current.arguments), changedPaths(current.arguments, next));
}

function clash(name: string): Decision {
  return {
    verdict: 'escalate',
    code: 'modify_conflict',
    reason: `${name} rewrites arguments that another engine has rewritten before it`,
    engine: NAME,
  };
}

function combine(said: readonly Decision[], asked: Action, current: Action): Decision {
  const winner = strictest(said);
  if (!winner) return block(NAME, 'policy_error', 'no engine is set up to decide, which counts as no');
  const rewritten = current.arguments !== asked.arguments && REWRITES.includes(winner.verdict);
  const people = winner.verdict === 'escalate' ? approversOf(winner, said) : undefined;
  const warned = said.some((one) => isWarning(one, winner));
  if (!rewritten && !people && !warned && winner.arguments === undefined) return winner;
  const { arguments: _own, ...rest } = winner;
  const notes = said.filter((one) => isWarning(one, winner)).map((one) => one.reason);
  return {
    ...rest,
    ...(rewritten && { arguments: current.arguments }),
    ...(people && { ask: people }),
    ...(warned && { reason: [rest.reason, ...notes].join('; ') }),
  };
}

function isWarning(one: Decision, winner: Decision): boolean {
  return one.code === SOFT_LIMIT && one !== winner;
}

/** Among equally strict answers the first one wins; among allows, the one with a rule, else the last. */
function strictest(said: readonly Decision[]): Decision | undefined {
  return said.reduce<Decision | undefined>((best, next) => {
    if (!best || stricter(next.verdict, best.verdict)) return next;
    if (next.verdict !== 'allow' || best.verdict !== 'allow') return best;
    return best.rule_id === undefined ? next : best;
  }, undefined);
}

/** A named list of approvers wins over an unspecific escalation; the shortest timeout counts. */
function approversOf(winner: Decision, said: readonly Decision[]): Decision['ask'] {
  const asks = [winner, ...said.filter((one) => one !== winner && one.verdict === 'escalate')].flatMap(
    (one) => one.ask ?? [],
  );
  const to = asks.find((one) => one.to?.length)?.to;
  const times = asks.flatMap((one) => one.expires_ms ?? []);
  if (!to && times.length === 0) return undefined;
  return { ...(to && { to }), ...(times.length > 0 && { expires_ms: Math.min(...times) }) };
}

function inShadow(shadow: Decision, said: readonly Decision[]): Decision {
  if (shadow.would_be === 'block') return shadow;
  const winner = strictest(said);
  if (!winner) return { ...shadow, would_be: 'block' };
  return {
    ...shadow,
    would_be: winner.verdict,
    reason: `${shadow.reason}; it would have been ${winner.verdict}: ${winner.reason}`,
  };
}

function withVersion(answer: Decision, said: readonly Decision[], engines: readonly PolicyEngine[]): Decision {
  if (answer.policy_version !== undefined) return answer;
  const version =
    said.find((one) => one.policy_version !== undefined)?.policy_version ??
    engines.map((engine) => (engine as Partial<PureEngine>).version).find((one) => one !== undefined);
  return version === undefined ? answer : { ...answer, policy_version: version };
}
