/** What other rules would have said about what was really asked: exactly the difference, and no guesses. */

import { join } from 'node:path';
import Database from 'libsql';
import { describe, expect, test } from 'vitest';
import { recordedDecisions } from '../../../../src/core/events/recorded-decisions.ts';
import type { Action } from '../../../../src/model/actions.ts';
import { createCedarEngine } from '../../../../src/policy/cedar/engine.ts';
import { createPolicyChain } from '../../../../src/policy/chain.ts';
import { compareDecisions } from '../../../../src/policy/compare.ts';
import { createPersonaEngine } from '../../../../src/policy/persona.ts';
import { loadPolicies } from '../../../../src/policy/rules/load.ts';
import { readAct } from '../../../../src/runtime/read-act.ts';
import { all, openTestGateway, REAL_TIME, type TestGateway } from '../../../support/gateway/test-gateway.ts';
import { needsFile } from '../../../support/gateway/test-store.ts';
import { type Script, scripted, toolbox } from '../../../support/tasks/script.ts';

needsFile();

const BEFORE = `
- { id: ordinary, then: allow }
- { id: people, when: { kind: tool, tool: ask* }, then: ask }
- { id: never, when: { kind: tool, tool: no* }, then: block }
- { id: mended, when: { kind: tool, tool: mend* }, then: modify, set: { safe: true } }
- { id: later, when: { kind: tool, tool: later* }, then: defer, retry_after: 1ms }
`;
const LONG = 'on and on '.repeat(60);

const works: Script = async ({ sink }) => {
  const call = (tool_call_id: string, tool: string, args = {}) =>
    sink.act({ kind: 'tool', tool, tool_call_id, arguments: args });
  await call('plain', 'write', { path: '/tmp/a' });
  await call('prod', 'write', { path: '/prod/db' });
  await call('secret', 'write', { path: '/tmp/b', password: 'hunter2hunter2' });
  await call('partly', 'write', { path: 'curl -H "Authorization: Bearer abc123abc123abc123"' });
  await call('long', 'write', { path: '/prod/long', text: LONG });
  await call('blocked', 'no');
  await call('mended', 'mend', { n: 1 });
  await call('asked', 'ask', { n: 2 });
  await call('deferred', 'later');
  await sink.ask({
    kind: 'approval',
    action: { kind: 'tool', tool: 'mend', tool_call_id: 'cannot', arguments: { n: 3 } },
  });
  await sink.ask({ kind: 'approval', action: { kind: 'fs.read', tool: 'cat', target: '/etc/hosts', effect: 'read' } });
};

async function worked(): Promise<{ gateway: TestGateway; id: string; workspace: string }> {
  const tools = toolbox('box', { write: undefined, no: undefined, mend: undefined, ask: undefined, later: undefined });
  const gateway = await openTestGateway({
    ...REAL_TIME,
    rules: BEFORE,
    tools: [tools],
    agents: [scripted('one', works)],
    settings: { inlineLimit: 300, deferTries: 1 },
  });
  const workspace = await gateway.workspace();
  const { id } = await gateway.submit(await gateway.session({ workspace_id: workspace }));
  await gateway.answer((await gateway.ask(id)).id, { approved: true });
  expect(await gateway.until(id)).toMatchObject({ status: 'COMPLETED' });
  return { gateway, id, workspace };
}

/** The gateway's own way of deciding, with other rules in it. */
async function policy(rules: string) {
  const policies = await loadPolicies({ rules, files: [] });
  return createPolicyChain({ engines: [createPersonaEngine(), createCedarEngine({ policies, read: readAct })] });
}

const nameOf = ({ tool_call_id, kind }: Action) => tool_call_id ?? kind;

async function compare(gateway: TestGateway, workspace: string, rules: string) {
  const recorded = recordedDecisions(gateway.runtime.store, { stream: { of: 'workspace', id: workspace } });
  const found = await all(compareDecisions(recorded, await policy(rules)));
  const of = (kind: string) => found.filter((one) => one.kind === kind).map(({ action, why }) => [nameOf(action), why]);
  return { found, changed: of('changed'), unknown: of('unknown') };
}

describe('recorded decisions', () => {
  test('are what the policy was asked, with the arguments of the request, and what it said', async () => {
    const { gateway, id, workspace } = await worked();
    const stream = { of: 'workspace', id: workspace } as const;
    const recorded = await all(recordedDecisions(gateway.runtime.store, { stream }));
    expect(recorded.map(({ action, decision }) => [nameOf(action), decision.verdict])).toEqual([
      ['prompt', 'allow'],
      ['plain', 'allow'],
      ['prod', 'allow'],
      ['secret', 'allow'],
      ['partly', 'allow'],
      ['long', 'allow'],
      ['blocked', 'block'],
      ['mended', 'modify'],
      ['asked', 'escalate'],
      ['deferred', 'defer'],
      ['deferred', 'defer'],
      ['cannot', 'modify'],
      ['fs.read', 'allow'],
    ]);
    const by = (name: string) => recorded.find(({ action }) => nameOf(action) === name)!;
    expect(by('plain').action).toMatchObject({
      kind: 'tool',
      tool: 'write',
      server: 'box',
      effect: 'write',
      evidence: 'held',
      workspace_id: workspace,
      task_id: id,
      actor: { id: 'agent:one', kind: 'agent', scopes: [] },
      arguments: { path: '/tmp/a' },
      tier: 'act_auto',
      cost: { tool_calls: 1 },
    });
    expect(by('long').action.arguments).toEqual({ path: '/prod/long', text: LONG });
    expect(by('secret').action.arguments).toEqual({ path: '/tmp/b', password: '[redacted: not on record]' });
    expect(by('partly').action.arguments).toEqual({ path: '[redacted: not on record]' });
    expect(by('prompt').action.arguments).toEqual({ input: '[redacted: not on record]' });
    expect(by('mended').decision.arguments).toEqual({ n: 1, safe: true });
    expect(by('fs.read').action).toMatchObject({ target: '/etc/hosts', arguments: {} });
    const event = await gateway.runtime.store.event(by('prod').event_id);
    expect(event!.event).toBe('vendor.tollbridge.decided');
  });

  test('a part of the log is enough, wherever it begins', async () => {
    const { gateway, id, workspace } = await worked();
    const stream = { of: 'task', id } as const;
    const events = await gateway.events(id);
    const decisions = events.filter(({ event }) => event.endsWith('.decided'));
    // Right after the request for `deferred`, before its decisions.
    const request = events.find(({ payload, event }) => event === 'tool.requested' && payload.tool_call_id === 'long')!;
    const [first] = await all(recordedDecisions(gateway.runtime.store, { stream, after: request.id, limit: 1 }));
    expect(first!.action).toMatchObject({ tool_call_id: 'long', arguments: { path: '/prod/long' } });
    const last = decisions.at(-1)!;
    const upTo = await all(recordedDecisions(gateway.runtime.store, { stream, upTo: last.id }));
    expect(upTo.at(-1)!.event_id).toBe(last.id);
    expect(
      await all(recordedDecisions(gateway.runtime.store, { stream: { of: 'workspace', id: workspace }, limit: 3 })),
    ).toHaveLength(3);
    // A call whose arguments are gone is not taken for one without any.
    const db = new Database(join(gateway.dir, 'log.db'));
    db.prepare('DELETE FROM blobs').run();
    db.close();
    const [gone] = await all(recordedDecisions(gateway.runtime.store, { stream, after: request.id, limit: 1 }));
    expect(gone!.action.arguments).toBe('[redacted: not on record]');
  });

  test('what a replay repeats is not asked twice', async () => {
    const { gateway, id, workspace } = await worked();
    const stream = { of: 'workspace', id: workspace } as const;
    const before = await all(recordedDecisions(gateway.runtime.store, { stream }));
    await gateway.send('task.replay', { task_id: id });
    await gateway.runtime.idle();
    expect(await all(recordedDecisions(gateway.runtime.store, { stream }))).toEqual(before);
  });

  test('personas are those of the time', async () => {
    const gateway = await openTestGateway({
      ...REAL_TIME,
      tools: [toolbox('box', { write: undefined })],
      agents: [
        scripted('one', async ({ sink }) =>
          sink.act({ kind: 'tool', tool: 'write', tool_call_id: 'c' }).then(() => {}),
        ),
      ],
    });
    const body = { version: '1', entry_workflow: 'one', description: '', receipt_policy: 'optional' };
    const persona = await gateway.send('resource.create', {
      object: 'persona',
      body: { ...body, name: 'trusted', autonomy_tier: 'act_auto' },
    });
    const workspace_id = await gateway.workspace();
    const work = async () => {
      const { id } = await gateway.submit(await gateway.session({ workspace_id }), { persona_id: persona.resource.id });
      return id;
    };
    await gateway.until(await work());
    await gateway.send('resource.update', {
      object: 'persona',
      id: persona.resource.id,
      body: { name: 'watched', autonomy_tier: 'suggest' },
    });
    const asked = await work();
    await gateway.answer((await gateway.ask(asked)).id, { approved: true });
    await gateway.until(asked);
    const recorded = await all(
      recordedDecisions(gateway.runtime.store, { stream: { of: 'workspace', id: workspace_id } }),
    );
    const calls = recorded.filter(({ action }) => action.tool_call_id === 'c');
    expect(calls.map(({ action, decision }) => [action.persona?.name, action.tier, decision.verdict])).toEqual([
      ['trusted', 'act_auto', 'allow'],
      ['watched', 'suggest', 'escalate'],
    ]);
    // The same rules say the same about each, though the persona is another now.
    const { found } = await compare(gateway, workspace_id, '[{ id: everything, then: allow }]');
    expect(found.map(({ kind }) => kind)).toEqual(['same', 'same', 'same', 'same']);
  });
});

describe('other rules for what was asked', () => {
  test('the same rules would have said the same', async () => {
    const { gateway, workspace } = await worked();
    const { changed, unknown, found } = await compare(gateway, workspace, BEFORE);
    expect(changed).toEqual([]);
    expect(unknown).toEqual([]);
    expect(found).toHaveLength(13);
  });

  test('a new rule changes exactly what it is about', async () => {
    const { gateway, workspace } = await worked();
    const { changed, unknown } = await compare(
      gateway,
      workspace,
      `${BEFORE}\n- { id: prod, when: { kind: tool, arguments: { path: /prod/* } }, then: block }`,
    );
    expect(changed).toEqual([
      ['prod', 'allow → block (prod)'],
      ['long', 'allow → block (prod)'],
    ]);
    // The path of one call lost a part of itself: nobody can say.
    expect(unknown).toEqual([['partly', 'the rules look at arguments.path, redacted in the record']]);
  });

  test('a rule about what was redacted leaves the question open', async () => {
    const { gateway, workspace } = await worked();
    const { changed, unknown } = await compare(
      gateway,
      workspace,
      `${BEFORE}\n- { id: weak, when: { kind: tool, arguments: { password: hunter* } }, then: block }`,
    );
    expect(changed).toEqual([]);
    expect(unknown).toEqual([['secret', 'the rules look at arguments.password, redacted in the record']]);
  });

  test('a rule taken away, and one about what was only hashed', async () => {
    const { gateway, workspace } = await worked();
    const without = BEFORE.split('\n')
      .filter((line) => !/people|mended|never/.test(line))
      .join('\n');
    const { changed } = await compare(gateway, workspace, without);
    expect(changed).toEqual([
      ['blocked', 'block → allow (ordinary)'],
      ['mended', 'modify → allow (ordinary)'],
      ['asked', 'escalate → allow (ordinary)'],
      ['cannot', 'modify → allow (ordinary)'],
    ]);
    const hashed = await compare(
      gateway,
      workspace,
      `${BEFORE}\n- { id: words, when: { kind: prompt, arguments: { input: { role: user } } }, then: block }`,
    );
    expect(hashed.unknown.map(([name]) => name)).toEqual(['prompt']);
  });
});
