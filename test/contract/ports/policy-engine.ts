/**
 * What every policy engine owes the gate (`src/ports/policy.ts`): one decision per act, with a reason; nothing of the act changed;
 * and a block, never a yes and never a hang, when the engine fails or stays silent.
 */
import { describe, expect, test } from 'vitest';
import { createGate } from '../../../src/core/actions/gate.ts';
import type { Action, Decision } from '../../../src/model/actions.ts';
import { VERDICTS } from '../../../src/model/words.ts';
import type { PolicyEngine } from '../../../src/ports/index.ts';

export interface EngineUnderTest {
  readonly engine: PolicyEngine;
  /** An act that the engine has no objection to, and an act that it does not allow. */
  readonly allowed: Action;
  readonly refused: Action;
}

export interface EngineCases {
  make(): Promise<EngineUnderTest>;
  /** The same engine where the service it depends on never answers. Absent: it depends on none. */
  readonly silent?: () => Promise<EngineUnderTest>;
  /** The same engine where that service breaks off. */
  readonly failing?: () => Promise<EngineUnderTest>;
}

const QUIET = { info() {}, warn() {}, error() {} };
const never = () => new AbortController().signal;

export function policyEngineContract(name: string, { make, silent, failing }: EngineCases): void {
  describe(`policy engine contract: ${name}`, () => {
    test('an act is decided with a known verdict, a reason and the name of the engine', async () => {
      const { engine, allowed, refused } = await make();
      for (const [action, wanted] of [
        [allowed, true],
        [refused, false],
      ] as const) {
        const decision = await engine.decide(action, never());
        expect(VERDICTS).toContain(decision.verdict);
        expect(decision.verdict === 'allow').toBe(wanted);
        expect(decision.reason).toMatch(/\S/);
        expect(decision.engine).toMatch(/\S/);
      }
    });

    test('deciding changes nothing of the act', async () => {
      const { engine, allowed, refused } = await make();
      for (const action of [allowed, refused]) {
        const before = structuredClone(action);
        await engine.decide(frozen(action), never());
        expect(action).toEqual(before);
      }
    });

    test('the same act is decided the same way, and a synchronous answer agrees with the asynchronous one', async () => {
      const { engine, allowed, refused } = await make();
      for (const action of [allowed, refused]) {
        const first = await engine.decide(action, never());
        expect(await engine.decide(action, never())).toEqual(first);
        expect(engine.judge?.(action) ?? first).toEqual(first);
      }
    });

    test('acts that are decided at the same time get their own answers', async () => {
      const { engine, allowed, refused } = await make();
      const acts = [allowed, refused, allowed, refused, refused, allowed];
      const decisions = await Promise.all(acts.map((action) => engine.decide(action, never())));
      expect(decisions.map(({ verdict }) => verdict === 'allow')).toEqual(acts.map((action) => action === allowed));
    });

    test('hostile names and values in an act are data', async () => {
      const { engine, refused } = await make();
      const args = JSON.parse(
        '{ "__proto__": { "polluted": true }, "constructor": null, "toString": 1, "deep": [[{}]] }',
      );
      const action = { ...refused, tool: 'toString', target: '__proto__', arguments: args };
      const decision = await gateOf(engine)(action);
      expect(VERDICTS).toContain(decision.verdict);
      expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    });

    test('a signal that has already fired does not make a yes of a no, and does not hang', async () => {
      const { engine, refused } = await make();
      const verdict = await engine.decide(refused, AbortSignal.abort()).then(
        (decision) => decision.verdict,
        () => 'failed',
      );
      expect(verdict).not.toBe('allow');
    });

    test('closing finishes, twice as well', async () => {
      const { engine } = await make();
      await engine.close?.();
      await engine.close?.();
    });

    for (const [what, broken] of [
      ['stays silent', silent],
      ['breaks off', failing],
    ] as const) {
      if (!broken) continue;
      test(`a service that ${what} is a decision other than allow, with a reason`, async () => {
        const { engine, allowed } = await broken();
        const decision = await gateOf(engine)(allowed);
        expect(decision.verdict).not.toBe('allow');
        expect(decision.reason).toMatch(/\S/);
        expect(engine.unanswered?.(allowed).verdict).not.toBe('allow');
      });
    }
  });
}

/** The gate as the core builds it, with little time. */
function gateOf(policy: PolicyEngine): (action: Action) => Promise<Decision> {
  const gate = createGate({ policy, timeoutMs: 300, log: QUIET, digest: () => 'digest' });
  return async (action) => await gate(action);
}

function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const member of Object.values(value)) frozen(member);
  }
  return value;
}
