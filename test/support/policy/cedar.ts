/** A policy text in Cedar: read, refused, or asked about an action. */
import { expect } from 'vitest';
import { anAction } from '../../../fixtures/policies/actions.ts';
import type { Decision } from '../../../src/model/actions.ts';
import { Fault } from '../../../src/model/faults.ts';
import { createCedarEngine } from '../../../src/policy/cedar/engine.ts';
import { loadPolicies } from '../../../src/policy/rules/load.ts';
import { readAct } from '../../../src/runtime/read-act.ts';

export const engineFor = async (text: string) =>
  createCedarEngine({ read: readAct, policies: await loadPolicies({ files: [{ name: 'own.cedar', text }] }) });

export const judge = async (text: string, change: object = {}): Promise<Decision> =>
  (await engineFor(text)).judge(anAction(change));

export const ALL = '(principal, action, resource)';

export const load = (text: string, name = 'a.cedar') => loadPolicies({ files: [{ name, text }] });

/** What is wrong with a policy text, line by line; nothing when it is fine. */
export const problems = async (text: string): Promise<readonly string[]> => {
  const refused = await load(text).then(
    () => undefined,
    (thrown: Error) => thrown,
  );
  if (refused) expect(refused).toBeInstanceOf(Fault);
  return refused?.message.split('\n') ?? [];
};
