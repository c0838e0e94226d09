/**
 * What a decision costs: the whole chain (persona, quota, 50 rules) over varied actions, against one bare Cedar call.
 * Everything runs interleaved in one process, so that a slow moment hits all contenders alike.
 */
import { createRequire } from 'node:module';
import type * as Cedar from '@cedar-policy/cedar-wasm/nodejs';
import type { Action, ActionKind } from '../../src/model/actions.ts';
import type { Persona, Quota } from '../../src/model/resources.ts';
import type { Effect } from '../../src/model/words.ts';
import { sliceOf } from '../../src/policy/cedar/compiled.ts';
import { createCedarEngine } from '../../src/policy/cedar/engine.ts';
import { principalOf, resourceOf } from '../../src/policy/cedar/select.ts';
import { createPolicyChain } from '../../src/policy/chain.ts';
import { toContext } from '../../src/policy/context.ts';
import { createPersonaEngine } from '../../src/policy/persona.ts';
import { createQuotaEngine } from '../../src/policy/quota.ts';
import { loadPolicies } from '../../src/policy/rules/load.ts';

export const name = 'gate';

const RULES = 50;
const ACTIONS = 400;
const BATCH = 100;
const SECONDS = 4;

const STAMP = '2026-11-16T00:00:00.000Z';
const envelope = { created_at: STAMP, updated_at: STAMP, metadata: {} };
const persona: Persona = {
  ...envelope,
  id: 'persona_coder',
  object: 'persona',
  name: 'coder',
  version: '1',
  entry_workflow: 'code',
  description: 'writes code',
  autonomy_tier: 'act_auto',
  receipt_policy: 'required',
  tools: ['*'],
};
const quota: Quota = {
  ...envelope,
  id: 'quota_day',
  object: 'quota',
  scope: 'workspace',
  limits: { tool_calls: 1_000_000, usd_micros: 5_000_000 },
  usage: { tool_calls: 12, usd_micros: 1_200 },
  reset_at: '2026-11-17T00:00:00.000Z',
};

/** Rules as an installation of this size has them: a few broad ones, many about one tool, some about arguments. */
const BROAD = `
- { id: reads, when: { effect: read }, then: allow }
- { id: tests, when: { tool: [run_tests, lint] }, then: allow }
- { id: outside, when: { effect: [send, pay, publish] }, then: ask, to: owner }
- { id: secrets, when: { arguments: { path: ["*.pem", "*.key", "*/.env"] } }, then: block, say: keys stay here }
- { id: system, when: { kind: fs.*, target: [/etc/*, /usr/*] }, then: block }
- { id: source, when: { kind: fs.write, target: /repo/* }, then: allow }
- { id: shell, when: { kind: terminal }, unless: { arguments: { command: "git *" } }, then: ask }
- { id: tainted, when: { effect: send, attributes: { tainted: true } }, then: block }
`;
const BROAD_COUNT = 8;

function sampleRules(): string {
  const single = Array.from({ length: RULES - BROAD_COUNT }, (_, index) => {
    const project = index % 3 === 0 ? `, arguments: { project: team-${index}-* }` : '';
    const then = ['allow', 'ask', 'block'][index % 3];
    return `- { id: tool-${index}, when: { kind: tool, tool: service_${index}_*${project} }, then: ${then} }`;
  });
  return [BROAD, ...single].join('\n');
}

function actions(): readonly Action[] {
  const shapes: readonly (readonly [ActionKind, Effect, string | undefined])[] = [
    ['tool', 'read', 'read_file'],
    ['tool', 'write', 'service_7_update'],
    ['tool', 'send', 'service_9_mail'],
    ['tool', 'execute', 'run_tests'],
    ['fs.write', 'write', undefined],
    ['terminal', 'execute', undefined],
    ['tool', 'delete', 'service_12_drop'],
  ];
  return Array.from({ length: ACTIONS }, (_, index) => {
    const [kind, effect, tool] = shapes[index % shapes.length] as (typeof shapes)[number];
    return {
      id: `act_${index}`,
      kind,
      actor: { id: `agent-${index % 5}`, kind: 'agent', scopes: ['*'], door: 'mcp' },
      workspace_id: 'ws_main',
      session_id: `session_${index % 9}`,
      ...(tool && { tool, server: 'internal' }),
      target: `/repo/src/part-${index}/file.ts`,
      arguments: {
        path: `/repo/src/part-${index}/file.ts`,
        project: `team-${index}-x`,
        command: `git log -n ${index}`,
        content: `line ${index}\n`.repeat(20),
        options: { dryRun: index % 2 === 0, depth: index },
      },
      effect,
      evidence: 'held',
      cost: { tool_calls: 1 },
      attributes: { tainted: index % 4 === 0 },
      persona,
      tier: 'act_auto',
      quotas: [quota],
    };
  });
}

export async function run(): Promise<
  Array<{ bench: string; ratio: number; against: string; [figure: string]: number | string }>
> {
  const cedar = createRequire(import.meta.url)('@cedar-policy/cedar-wasm/nodejs') as typeof Cedar;
  const policies = await loadPolicies({ rules: sampleRules(), files: [] });
  const one = await loadPolicies({ rules: '- { id: reads, when: { effect: read }, then: allow }', files: [] });
  const asked = actions();
  const clock = { now: () => STAMP };
  const chain = (memoEntries: number) =>
    createPolicyChain({
      engines: [createPersonaEngine(), createQuotaEngine({ clock }), createCedarEngine({ policies, memoEntries })],
    });
  const signal = new AbortController().signal;

  // The bare calls are made beforehand and hold only what the rules name: nothing but Cedar itself is on their clock.
  const bare = (set: typeof policies, id: string) => {
    cedar.preparsePolicySet(id, { staticPolicies: set.text });
    const { names } = sliceOf(set.version, 'all', set.rules);
    return asked.map((action) => ({
      principal: principalOf(action),
      action: { type: 'Action', id: action.kind },
      resource: resourceOf(action),
      context: toContext(action, names) as Record<string, never>,
      preparsedPolicySetId: id,
      entities: [],
    }));
  };
  const bareFifty = bare(policies, 'bench-fifty');
  const bareOne = bare(one, 'bench-one');
  const fresh = chain(0);
  const remembering = chain(4_096);

  const contenders: Record<string, (index: number) => unknown> = {
    fresh: (index) => fresh.decide(asked[index] as Action, signal),
    memo: (index) => remembering.decide(asked[index] as Action, signal),
    bareFifty: (index) => cedar.statefulIsAuthorized(bareFifty[index] as Cedar.StatefulAuthorizationCall),
    bareOne: (index) => cedar.statefulIsAuthorized(bareOne[index] as Cedar.StatefulAuthorizationCall),
  };
  const us = await interleave(contenders);
  const line = (bench: string, ours: string, theirs: string, against: string) => ({
    bench,
    ratio: Number(((us[theirs] ?? 0) / (us[ours] ?? 1)).toFixed(3)),
    against,
    ours_us: Number((us[ours] ?? 0).toFixed(1)),
    theirs_us: Number((us[theirs] ?? 0).toFixed(1)),
  });
  return [
    line('gate', 'fresh', 'bareOne', 'one bare Cedar evaluation of a single rule; ours remembers nothing'),
    line(
      'gate-same-rules',
      'fresh',
      'bareFifty',
      'one bare Cedar evaluation of the same 50 rules; ours remembers nothing',
    ),
    line('gate-memo', 'memo', 'bareOne', 'one bare Cedar evaluation of a single rule; ours was asked before'),
  ];
}

/** Median microseconds per call, batch by batch in turn. */
async function interleave(contenders: Record<string, (index: number) => unknown>): Promise<Record<string, number>> {
  const times = new Map(Object.keys(contenders).map((key) => [key, [] as number[]]));
  const end = performance.now() + SECONDS * 1_000;
  for (let round = 0; performance.now() < end; round += 1) {
    for (const [key, call] of Object.entries(contenders)) {
      const start = performance.now();
      for (let index = 0; index < BATCH; index += 1) await call((round * BATCH + index) % ACTIONS);
      // The first rounds warm everyone up.
      if (round >= 4) times.get(key)?.push(((performance.now() - start) * 1_000) / BATCH);
    }
  }
  return Object.fromEntries(
    [...times].map(([key, list]) => [key, list.toSorted((a, b) => a - b)[list.length >> 1] ?? 0]),
  );
}
