/** A policy text in Cedar, asked about an action. */
import { anAction } from '../../fixtures/policies/actions.ts';
import type { Decision } from '../../src/model/actions.ts';
import { createCedarEngine } from '../../src/policy/cedar.ts';
import { loadPolicies } from '../../src/policy/load.ts';

export const engineFor = async (text: string) =>
  createCedarEngine({ policies: await loadPolicies({ files: [{ name: 'house.cedar', text }] }) });

export const judge = async (text: string, change: object = {}): Promise<Decision> =>
  (await engineFor(text)).judge(anAction(change));

export const ALL = '(principal, action, resource)';
