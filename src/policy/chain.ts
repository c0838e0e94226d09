/**
 * Several engines, one answer: the strictest. An engine that throws, answers nonsense or says nothing in time has
 * not said yes. It refuses to wait for anyone longer than its time, even for an engine that ignores its signal.
 */
import type { Action, Decision } from '../model/actions.ts';
import type { JsonObject } from '../model/schema.ts';
import type { Verdict } from '../model/words.ts';
import type { PolicyEngine } from '../ports.ts';
import { checked } from './answer.ts';
import type { NamedValue } from './context.ts';
import { block, isPure, type PureEngine, stricter } from './engine.ts';
import { changedPaths, overlap } from './merge-patch.ts';
import { SHADOW } from './persona.ts';
import { SOFT_LIMIT } from './quota.ts';

const NAME = 'chain';
const DEFAULT_TIMEOUT_MS = 5_000;
/** Answers whose `arguments` count: the rewritten call runs, or is what a person is asked about. */
const REWRITES: readonly Verdict[] = ['modify', 'escalate'];

export interface ChainDeps {
  /** In the order they are asked: persona, quotas, rules, then harnesses outside. A function is called for each decision. */
  readonly engines: readonly PolicyEngine[] | (() => readonly PolicyEngine[]);
  /** For all engines together. */
  readonly timeoutMs?: number;
}

export interface PolicyChain extends PolicyEngine {
  /** Undefined while somebody outside has a say. */
  judge(action: Action): Decision | undefined;
  inputs(action: Action): readonly NamedValue[];
}

export function createPolicyChain({ engines: given, timeoutMs = DEFAULT_TIMEOUT_MS }: ChainDeps): PolicyChain {
  const current = typeof given === 'function' ? given : () => given;
  /** Engines are asked one after the other; those that say they take long may. */
  const patience = () => current().reduce((sum, { patienceMs = 0 }) => sum + patienceMs, 0);
  return {
    name: NAME,
    get patienceMs() {
      return patience();
    },
    judge(action) {
      const engines = current();
      if (!engines.every(isPure)) return undefined;
      const hearing = openHearing(action);
      for (const engine of engines) if (!hearing.hear(engine, askPure(engine, hearing.current()))) break;
      return hearing.answer(engines);
    },
    async decide(action, signal, withinMs = Number.POSITIVE_INFINITY) {
      const engines = current();
      const deadline = performance.now() + Math.min(withinMs, Math.max(timeoutMs, patience()));
      const hearing = openHearing(action);
      for (const [at, engine] of engines.entries()) {
        const share = shareOf(engines, at, deadline - performance.now());
        const said = await ask(engine, hearing.current(), signal, share);
        if (!hearing.hear(engine, said)) break;
      }
      return hearing.answer(engines);
    },
    inputs: (action) => current().flatMap((engine) => (engine as Partial<PureEngine>).inputs?.(action) ?? []),
  };
}

/**
 * One engine that says nothing must not use up the time of those after it: where there is less time than all of them
 * would take, each gets its part of what is left.
 */
function shareOf(engines: readonly PolicyEngine[], at: number, leftMs: number): number {
  const { patienceMs: own = 0 } = engines[at] as PolicyEngine;
  let wanted = 0;
  for (let next = at; next < engines.length; next += 1) wanted += engines[next]?.patienceMs ?? 0;
  return own === 0 || wanted <= leftMs ? leftMs : (leftMs * own) / wanted;
}

interface Hearing {
  /** The act as those heard so far would have it run. */
  current(): Action;
  /** False when nobody else has to be heard. */
  hear(engine: PolicyEngine, said: unknown): boolean;
  answer(engines: readonly PolicyEngine[]): Decision;
}

/** What the engines say about one act, in turn, and what follows from it. */
function openHearing(action: Action): Hearing {
  const said: Decision[] = [];
  let current = action;
  let shadowed: Decision | undefined;
  return {
    current: () => current,
    hear(engine, answered) {
      const decision = checked(engine, answered);
      if (isShadow(engine, decision) && !shadowed) {
        // Nothing will act, but what the others would have said is the point of a shadow.
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
        // Later engines judge what would run, not what was first asked for.
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

/** Pure engines answer at once. Others get a signal of their own, and are left behind when it fires. */
async function ask(engine: PolicyEngine, action: Action, signal: AbortSignal, msLeft: number): Promise<unknown> {
  // Rules take no time, so there is always time for them.
  if (isPure(engine)) return askPure(engine, action);
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

/** The cause may quote arguments; the reason goes to people and into the log, so it does not. */
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
    // Inside an async function, so that an engine that throws before it promises anything ends up here too.
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

/** Two engines that rewrite different members both get their way; two that rewrite the same one need a person. */
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
  const people = winner.verdict === 'escalate' ? whoToAsk(winner, said) : undefined;
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

/** Among equals the first to object explains best; among allows, the one with a rule, else the last. */
function strictest(said: readonly Decision[]): Decision | undefined {
  return said.reduce<Decision | undefined>((best, next) => {
    if (!best || stricter(next.verdict, best.verdict)) return next;
    if (next.verdict !== 'allow' || best.verdict !== 'allow') return best;
    return best.rule_id === undefined ? next : best;
  }, undefined);
}

/** An engine that names people speaks for one that only says "ask someone"; the shortest time counts. */
function whoToAsk(winner: Decision, said: readonly Decision[]): Decision['ask'] {
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
