/** What an agent says of its own act may raise its effect, and never lowers it below what kind and arguments show. */
import { describe, expect, test } from 'vitest';
import { effectOf } from '../../../../src/core/actions/effect-floor.ts';
import type { Action } from '../../../../src/model/actions.ts';
import type { Effect } from '../../../../src/model/words.ts';
import { readAct } from '../../../../src/runtime/read-act.ts';
import { of, openTestGateway } from '../../../support/gateway/test-gateway.ts';
import { countingTools } from '../../../support/gateway/tools.ts';

type Said = Parameters<typeof readAct>[0];
const counted = (said: Said) => effectOf(said, readAct(said).shows);

describe('the effect an act counts with', () => {
  test.each<readonly [string, Said, Effect]>([
    ['a terminal', { kind: 'terminal', effect: 'read', arguments: { command: 'ls' } }, 'execute'],
    ['a terminal without a command', { kind: 'terminal', effect: 'none' }, 'execute'],
    ['a file written', { kind: 'fs.write', effect: 'read', arguments: { path: 'a' } }, 'write'],
    ['a file read', { kind: 'fs.read', effect: 'none', arguments: { path: 'a' } }, 'read'],
    ['memory written', { kind: 'memory.write', effect: 'none' }, 'write'],
    ['work handed on', { kind: 'handoff', effect: 'none' }, 'unknown'],
    [
      'a command, called reading',
      { kind: 'tool', tool: 'look', effect: 'read', arguments: { command: 'ls' } },
      'execute',
    ],
    ['a list of words', { kind: 'tool', tool: 'look', effect: 'read', arguments: { argv: ['ls'] } }, 'execute'],
    ['a command, called sending', { kind: 'tool', tool: 'x', effect: 'send', arguments: { cmd: 'ls' } }, 'execute'],
    ['a command of a tool nobody knows', { kind: 'tool', tool: 'x', arguments: { command: 'ls' } }, 'execute'],
    [
      'a text for a file',
      { kind: 'tool', tool: 'look', effect: 'read', arguments: { path: 'a', content: 'b' } },
      'write',
    ],
    ['a shell without arguments', { kind: 'tool', tool: 'Bash', effect: 'read' }, 'execute'],
    ['a shell behind a prefix', { kind: 'tool', tool: 'mcp__x__run_command', effect: 'read' }, 'execute'],
    ['a program text', { kind: 'tool', tool: 'run_python', effect: 'read', arguments: { code: '1' } }, 'execute'],
    ['an edit', { kind: 'tool', tool: 'Edit', effect: 'read', arguments: { file_path: 'a' } }, 'write'],
    ['a file deleted', { kind: 'tool', tool: 'delete_file', effect: 'read', arguments: { path: 'a' } }, 'delete'],
    ['a patch', { kind: 'tool', tool: 'apply_patch', effect: 'none', arguments: { input: 'x' } }, 'write'],
    [
      'a kind the agent says itself',
      { kind: 'tool', tool: 'x', effect: 'read', claims: { kind: 'execute' } },
      'execute',
    ],
    [
      'a kind that is less than the arguments',
      { kind: 'tool', tool: 'x', effect: 'read', arguments: { command: 'ls' }, claims: { kind: 'read' } },
      'execute',
    ],
    [
      'more than the arguments show',
      { kind: 'tool', tool: 'x', effect: 'pay', arguments: { path: 'a', content: 'b' } },
      'pay',
    ],
    ['a read', { kind: 'tool', tool: 'Read', effect: 'read', arguments: { file_path: 'a' } }, 'read'],
    [
      'an editor that only looks',
      { kind: 'tool', tool: 'str_replace_editor', effect: 'read', arguments: { command: 'view', path: 'a' } },
      'read',
    ],
    ['nothing said and nothing shown', { kind: 'tool', tool: 'x' }, 'unknown'],
    ['a prompt', { kind: 'prompt', effect: 'none', arguments: { command: 'ls' } }, 'none'],
    [
      'a tool called __proto__',
      { kind: 'tool', tool: '__proto__', effect: 'read', arguments: { command: 'ls' } },
      'execute',
    ],
  ])('%s', (_, said, expected) => {
    expect(counted(said)).toBe(expected);
  });
});

describe('in the bridge', () => {
  const RULES =
    '- { id: reads, when: { effect: read }, then: allow }\n- { id: no-shell, when: { effect: execute }, then: block }';

  async function proposed(action: Partial<Action>) {
    const t = await openTestGateway({ rules: RULES });
    const task = await (await t.room()).task({ agent: 'none' });
    const said = { kind: 'tool', tool: 'x', ...action };
    const { decision } = await t.send('action.propose', { task_id: task.id, action: said as never, wait_ms: 0 });
    return { decision, log: await t.events(task.id) };
  }

  test('a proposal that calls a command reading is judged as a command, and the log says so', async () => {
    const { decision, log } = await proposed({ effect: 'read', tool_call_id: 'c1', arguments: { command: 'ls' } });
    expect(decision).toMatchObject({ verdict: 'block', rule_id: 'no-shell' });
    expect(of(log, 'tool.requested')[0]?.payload).toMatchObject({ effect: 'execute' });
  });

  test('a proposal cannot call itself a mounted tool', async () => {
    const { decision } = await proposed({
      effect: 'read',
      definition: 'd',
      evidence: 'held',
      arguments: { command: 'ls' },
    });
    expect(decision).toMatchObject({ verdict: 'block', rule_id: 'no-shell' });
  });

  test('a proposal that reads is let through', async () => {
    const { decision } = await proposed({ tool: 'Read', effect: 'read', arguments: { file_path: 'a' } });
    expect(decision).toMatchObject({ verdict: 'allow', rule_id: 'reads' });
  });

  test('a mounted tool keeps the effect its server has', async () => {
    const tools = countingTools({ send: { effect: 'send' } });
    const t = await openTestGateway({ rules: '- { id: send, when: { effect: send }, then: allow }', tools: [tools] });
    const task = await (await t.room()).task({ agent: 'none' });
    const action = { kind: 'tool', tool: 'send', effect: 'read', arguments: { to: 'bo', command: 'ls' } } as const;
    await t.send('tool.call', { task_id: task.id, action });
    expect(of(await t.events(task.id), 'tool.requested')[0]?.payload).toMatchObject({ effect: 'send' });
  });

  test('what it touches is not written down a second time', async () => {
    const { log } = await proposed({ effect: 'read', arguments: { command: 'ls' } });
    const [decided] = of(log, 'vendor.tollbridge.decided').slice(-1);
    const action = decided?.payload.action as object;
    expect(Object.keys(action)).not.toContain('facts');
    expect(Object.keys(action)).not.toContain('root');
  });
});
