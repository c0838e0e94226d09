/** Rules from the command line: written cases, and everything that was decided put to other rules. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { policyCheck, policyShow } from '../../../src/cli/commands/rules/policy.ts';
import { policyDiff } from '../../../src/cli/commands/rules/policy-diff.ts';
import { policyTest } from '../../../src/cli/commands/rules/policy-test.ts';
import { createProgress } from '../../../src/cli/output/progress.ts';
import { systemClock } from '../../../src/core/clock.ts';
import type { EventDraft } from '../../../src/model/events.ts';
import { createSqliteStore } from '../../../src/store/sqlite/index.ts';
import { aDirectory, aLog, ran, typed } from '../../support/process/cli.ts';

async function written(files: Readonly<Record<string, string>>) {
  const dir = await aDirectory();
  for (const [name, text] of Object.entries(files)) await writeFile(join(dir, name), text);
  return { dir, config: join(dir, 'tollbridge.yaml'), path: (name: string) => join(dir, name) };
}

const RULES = `
- { id: reads, when: { effect: read }, then: allow }
- { id: mail, when: { tool: send_mail }, then: ask }
- { id: no-force, when: { tool: push, arguments: { force: true } }, then: modify, set: { force: false } }
- { id: not-ann, when: { principal: "person:ann", tool: pay }, then: block, say: ann may not pay }
`;

test('cases that come out as written are ok, one by one, against the rules they name', async () => {
  const { path } = await written({
    'rules.yaml': RULES,
    'cases.yaml': `
rules: rules.yaml
cases:
  - { name: reading is fine, action: { tool: read_note, effect: read }, expect: allow, rule: reads }
  - { name: mail asks, action: { tool: send_mail, effect: send, arguments: { to: ana } }, expect: ask, rule: mail }
  - name: no force
    action: { tool: push, effect: publish, arguments: { force: true, branch: main } }
    expect: modify
    arguments: { force: false, branch: main }
  - { name: not ann, action: { tool: pay, effect: pay, principal: "person:ann" }, expect: deny }
  - { name: nobody said anything, action: { tool: pay, effect: pay }, expect: ask }
  - { action: { tool: read_note, effect: read, tier: suggest }, expect: ask }
`,
  });
  const { code, out } = await typed(() => policyTest(path('cases.yaml'), {}));
  expect(out.replace(/sha256:\w+/, 'VERSION')).toBe(
    'ok   reading is fine\nok   mail asks\nok   no force\nok   not ann\nok   nobody said anything\nok   case 6\n6 cases, all as expected; rules VERSION\n',
  );
  expect(code).toBe(0);
});

test('a case that comes out otherwise says what was expected, what came, and which rule said so', async () => {
  const { path } = await written({
    'rules.yaml': RULES,
    'cases.yaml': `
- { name: mail is free, action: { tool: send_mail, effect: send }, expect: allow }
- { name: by another rule, action: { tool: read_note, effect: read }, expect: allow, rule: other }
`,
  });
  const file = path('cases.yaml');
  const { code, out } = await typed(() => policyTest(file, { rules: path('rules.yaml') }));
  expect(code).toBe(1);
  expect(out.split('\n').slice(0, 4)).toEqual([
    `BAD  mail is free  (${file}:2)`,
    expect.stringMatching(/^ {5}expected allow, got ask {2}\[rule mail: /),
    `BAD  by another rule  (${file}:3)`,
    expect.stringMatching(/^ {5}expected rule other to decide, got reads {2}\[rule reads: /),
  ]);
  const json = await typed(() => policyTest(file, { rules: path('rules.yaml'), json: true }));
  expect(
    json.out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toMatchObject([
    { name: 'mail is free', ok: false, expect: 'allow', got: 'escalate', line: 2 },
    { name: 'by another rule', ok: false, expect: 'allow', got: 'allow', line: 3 },
  ]);
});

test.each([
  ['no cases at all', 'nothing: here', /:1: has to be a list of cases/],
  [
    'a word nobody knows',
    '- { action: { tol: x }, expect: allow }',
    /:1:15: nothing here is called tol; did you mean tool\?/,
  ],
  ['an answer that is none', '- { action: { tool: x }, expect: perhaps }', /:1:\d+: .*expect/],
  ['no YAML', '- { action: [', /:1:\d+: /],
])('%s is a mistake with a place, not a failed case', async (_, text, says) => {
  const { path } = await written({ 'cases.yaml': text });
  const { code, out, err } = await typed(() => policyTest(path('cases.yaml'), {}));
  expect(err).toMatch(says);
  expect({ code, out }).toEqual({ code: 2, out: '' });
});

test('without other rules, cases are held against those in force', async () => {
  const { config, path } = await written({
    'tollbridge.yaml': 'rules: [{ id: never, when: { tool: x }, then: block }]',
    'cases.yaml': '- { action: { tool: x }, expect: block, rule: never }',
  });
  expect((await typed(() => policyTest(path('cases.yaml'), { config }))).code).toBe(0);
  expect((await typed(() => policyCheck({ config, json: true }))).out).toMatch(
    /^\{"ok":true,"rules":1,"version":"sha256:\w+","files":\[\{"file":"[^"]+tollbridge.yaml","rules":1\}\],"problems":\[\]\}\n$/,
  );
  expect(await typed(() => policyTest(path('absent.yaml'), { config }))).toMatchObject({ code: 3, out: '' });
});

test('recorded traffic is put to other rules, and what would change is listed by event', async () => {
  const { dir, tasks } = await aLog(['read plan then send the plan to ana']);
  const { path } = await written({
    'stricter.yaml': `
- { id: no-plan, when: { tool: read_note, arguments: { name: plan } }, then: block }
- { id: mail-is-fine, when: { tool: send_mail }, then: allow }
`,
    'same.yaml': `
- { id: reads, when: { effect: read }, then: allow }
- { id: mail, when: { tool: send_mail }, then: ask }
`,
  });
  const end = tasks[0]?.slice(-6);
  const { code, out, err } = await typed(() => policyDiff(path('stricter.yaml'), { data: dir }));
  expect({ code, err }).toEqual({ code: 1, err: '' });
  expect(out).toBe(
    [
      `~ event 11  ${end}  read_note (name: plan)  allow → block (no-plan)`,
      `~ event 23  ${end}  send_mail (to: ana, text: "the plan")  ask → allow (mail-is-fine)`,
      '3 decisions on record: 2 would change, 0 unknown, 1 stay as they were',
      '',
    ].join('\n'),
  );
  const same = await typed(() => policyDiff(path('same.yaml'), { data: dir, json: true }));
  expect(same.code).toBe(0);
  expect(JSON.parse(same.out)).toMatchObject({ object: 'summary', decisions: 3, changed: 0, same: 3 });
});

/** Calls of a hundred to a task, in which the request of every fifth is in another part of the log than its decision. */
async function aLongLog(calls: number): Promise<string> {
  const dir = await aDirectory();
  const projector = { touches: () => [], apply: () => [] };
  const store = await createSqliteStore({ path: join(dir, 'log.db'), clock: systemClock, projector });
  const eventsOf = (call: number): [EventDraft, EventDraft] => {
    const task_id = `task_${Math.floor(call / 100)}`;
    const at = { resource: { object: 'task', id: task_id }, task_id, workspace_id: 'w', actor: 'agent:a' };
    const about = { tool_call_id: `call_${call}`, kind: 'tool', tool: 'read_note', effect: 'read', evidence: 'held' };
    const input = { name: call % 1_000 === 999 ? 'plan' : `note ${call % 7}` };
    const action = { ...about, id: `act_${call}`, actor: { id: 'agent:a', kind: 'agent' } };
    const decision = { verdict: 'allow', reason: 'reading', engine: 'cedar', rule_id: 'reads' };
    return [
      { event: 'tool.requested', payload: { ...about, name: 'read_note', input }, ...at } as EventDraft,
      { event: 'vendor.tollbridge.decided', payload: { action, decision }, ...at } as EventDraft,
    ];
  };
  // Asked one after the other and decided later, so that wherever the log is cut there are open requests.
  for (let from = 0; from < calls; from += 100) {
    const drafts = Array.from({ length: 100 }, (_, at) => eventsOf(from + at));
    await store.commit({
      decide: () => ({ events: [...drafts.map(([asked]) => asked), ...drafts.map(([, decided]) => decided)] }),
    });
  }
  await store.close();
  return dir;
}

test('a long log is compared on several threads, with the same result in the same order', async () => {
  const dir = await aLongLog(10_050);
  const { path } = await written({
    'rules.yaml': '- { id: no-plan, when: { tool: read_note, arguments: { name: plan } }, then: block }\n',
  });
  const here = await typed(() => policyDiff(path('rules.yaml'), { data: dir }));
  expect(here.out.split('\n').filter((line) => line.startsWith('~'))).toHaveLength(10);
  expect(here.out).toContain('10100 decisions on record: 10 would change, 0 unknown, 10090 stay as they were');
  const threads = await ran(['policy', 'diff', path('rules.yaml'), '--data', dir]);
  expect(threads).toEqual({ code: 1, out: here.out, err: '' });
  const broken = await ran(['policy', 'diff', path('absent.yaml'), '--data', dir]);
  expect(broken).toMatchObject({ code: 3, out: '' });
});

test('rules of a whole configuration can be compared, one task alone, and rules that cannot be read change nothing', async () => {
  const { dir, tasks } = await aLog(['read plan', 'read plan']);
  const { path } = await written({
    'tollbridge.yaml': 'demo: true\nrules: [{ id: shut, when: { effect: read }, then: block }]',
    'broken.yaml': '- { id: x, then: perhaps }',
  });
  const { out } = await typed(() => policyDiff(path('tollbridge.yaml'), { data: dir, task: tasks[1] ?? '' }));
  expect(out.split('\n').filter((line) => line.startsWith('~'))).toHaveLength(1);
  const broken = await typed(() => policyDiff(path('broken.yaml'), { data: dir }));
  expect(broken).toMatchObject({ code: 2, out: '' });
  expect(broken.err).toContain('broken.yaml:1');
});

test('what a secret hid from the record is unknown, and not guessed', async () => {
  const { dir } = await aLog(['send the key sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789-AbCdEfGhIj to ana']);
  const { path } = await written({
    'rules.yaml': '- { id: words, when: { tool: send_mail, arguments: { text: "*plan*" } }, then: block }\n',
  });
  const { out, code } = await typed(() => policyDiff(path('rules.yaml'), { data: dir }));
  expect(out).toMatch(
    /^\? event \d+ {2}\w{6} {2}send_mail .* the rules look at arguments\.text, redacted in the record\n/m,
  );
  expect(out).toContain('0 would change, 1 unknown');
  expect(code).toBe(0);
});

test('programs get the rules, and what is wrong with them, as data', async () => {
  const dir = await aDirectory();
  const config = join(dir, 'tollbridge.yaml');
  await writeFile(config, 'rules:\n  - { id: reads, when: { effect: read }, then: allow }\n');
  const shown = await typed(() => policyShow({ config, json: true }));
  expect(JSON.parse(shown.out)).toMatchObject({ rules: 1, text: expect.stringContaining('@id("reads")') });
  const fine = await typed(() => policyCheck({ config, json: true }));
  expect([fine.code, JSON.parse(fine.out)]).toMatchObject([0, { ok: true, rules: 1, problems: [] }]);
  await writeFile(join(dir, 'bad.cedar'), 'permit(');
  await writeFile(config, 'policies: [bad.cedar]\n');
  const wrong = await typed(() => policyCheck({ config, json: true }));
  expect(wrong).toMatchObject({ code: 2, err: '' });
  expect(JSON.parse(wrong.out)).toMatchObject({ ok: false, problems: [{ file: join(dir, 'bad.cedar'), line: 1 }] });
  await writeFile(config, 'ruls: []\n');
  const misspelled = await typed(() => policyCheck({ config, json: true }));
  expect(JSON.parse(misspelled.out).problems).toEqual([
    { message: `${config}:1:1: ruls is not known here; did you mean rules?` },
  ]);
});

test('a bar is drawn where a person sees it, and wiped when it is done', () => {
  const drawn: string[] = [];
  const bar = createProgress('asking', 200, { isTTY: true, write: (text) => drawn.push(text) });
  bar.at(50);
  bar.end();
  expect(drawn).toEqual(['\rasking [########......................] 25%', `\r${' '.repeat(44)}\r`]);
  const narrow = createProgress('asking', 200, { isTTY: true, columns: 20, write: (text) => drawn.push(text) });
  narrow.at(100);
  narrow.end();
  expect(drawn.splice(2)).toEqual(['\rasking [###..] 50%', `\r${' '.repeat(19)}\r`]);
  const silent = createProgress('asking', 200, { isTTY: false, write: (text) => drawn.push(text) });
  silent.at(50);
  silent.end();
  expect(drawn).toHaveLength(2);
});

test.each([
  [
    'a persona in a rule of the configuration',
    'personas: { careful: {} }\nrules:\n  - { id: one, then: allow }\n  - { id: two, when: { persona: carefull }, then: block }\n',
    /tollbridge\.yaml:4:5: rule two: there is no persona carefull; did you mean careful\?/,
  ],
  [
    'a persona in an exception',
    'rules:\n  - id: one\n    unless: { persona: [ops, dev] }\n    then: block\n',
    /tollbridge\.yaml:2:5: rule one: there is no persona ops; there are: none/,
  ],
  [
    'a persona by its id',
    'personas: { ops: {} }\nrules: [{ id: one, when: { persona_id: ops }, then: block }]\n',
    /rule one: there is no persona with the id ops; there are: persona_ops/,
  ],
  ['a door', 'rules: [{ id: one, when: { door: acpp }, then: block }]\n', /there is no door acpp; did you mean acp\?/],
  [
    'a server that is nearly one there is',
    'tools: { github: { mcp: { command: [x] } } }\nrules: [{ id: one, when: { server: githib }, then: block }]\n',
    /there is no server githib; did you mean github\?/,
  ],
  [
    'an agent in a rule about giving it work',
    'agents: { coder: { acp: { command: [x] } } }\nrules: [{ id: one, when: { kind: prompt, tool: codr }, then: block }]\n',
    /there is no agent codr; did you mean coder\?/,
  ],
  [
    'the persona of a door',
    'personas: { careful: {} }\ndoors:\n  ahp:\n    persona: careful\n',
    /tollbridge\.yaml:4:14: there is no persona with the id careful; did you mean persona_careful\?/,
  ],
  [
    'the agent of a door',
    'agents: { coder: { acp: { command: [x] } } }\ndoors: { acp: { agent: codar } }\n',
    /tollbridge\.yaml:2:24: there is no agent codar; did you mean coder\?/,
  ],
  [
    'the agent of a persona',
    'agents: { coder: { acp: { command: [x] } } }\npersonas: { one: { agent: other } }\n',
    /tollbridge\.yaml:2:27: there is no agent other; there are: coder/,
  ],
])('check finds %s that does not exist', async (_what, text, wrong) => {
  const { config, dir } = await written({ 'tollbridge.yaml': text });
  const found = await typed(() => policyCheck({ config, data: dir }));
  expect(found).toMatchObject({ code: 2, out: '' });
  expect(found.err).toMatch(wrong);
});

test('check finds such a name in rule files of both kinds, and patterns and other names are left alone', async () => {
  const cedar =
    '@id("c")\nforbid(principal, action, resource) when { context has persona && context.persona == "opps" };';
  const { config, dir, path } = await written({
    'tollbridge.yaml': 'personas: { ops: {}, ops-night: {} }\npolicies: [a.yaml, b.cedar]\n',
    'a.yaml':
      '- { id: a, when: { persona: "ops*", server: anything }, then: allow }\n- { id: b, when: { persona: nobody }, then: ask }',
    'b.cedar': `\n${cedar}`,
  });
  const { code, out } = await typed(() => policyCheck({ config, data: dir, json: true }));
  expect(code).toBe(2);
  expect(JSON.parse(out).problems).toEqual([
    {
      file: path('a.yaml'),
      rule: 'b',
      line: 2,
      column: 3,
      message: 'there is no persona nobody; there are: ops, ops-night',
    },
    { file: path('b.cedar'), rule: 'c', line: 2, column: 1, message: 'there is no persona opps; did you mean ops?' },
  ]);
});
