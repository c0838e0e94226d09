/** The demo tools: what each says of itself, does, and leaves undone. */
import { describe, expect, test } from 'vitest';
import { createDemoTools } from '../../../src/demo/tools.ts';
import { Skill } from '../../../src/model/resources.ts';
import type { JsonObject } from '../../../src/model/schema.ts';
import { check } from '../../../src/model/validate.ts';
import { actionOf } from '../../support/gateway/demo-agent.ts';

describe('tools', () => {
  const never = new AbortController().signal;

  test('every definition is a skill, and says what it does to the world', async () => {
    const tools = createDemoTools();
    const skills = await tools.list();
    expect(skills.map(({ name, requires_approval }) => [name, tools.effect?.(name), requires_approval])).toEqual([
      ['read_note', 'read', false],
      ['write_note', 'write', false],
      ['delete_note', 'delete', true],
      ['send_mail', 'send', true],
    ]);
    for (const skill of skills) check(Skill, skill, skill.name);
    expect(await tools.list()).toBe(skills);
    expect(tools.effect?.('constructor')).toBeUndefined();
  });

  test('a change says what it changed, by hash', async () => {
    const tools = createDemoTools({ notes: { a: 'one' } });
    const written = await tools.call(
      actionOf({ kind: 'tool', tool: 'write_note', arguments: { name: 'a', text: 'two' } }),
      never,
    );
    expect(written).toEqual({
      status: 'ok',
      output: { text: 'a is written.' },
      effects: [
        {
          type: 'fs_write',
          path: 'notes/a',
          operation: 'modify',
          before_sha256: 'sha256:7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed',
          after_sha256: 'sha256:3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3',
        },
      ],
    });
    const deleted = await tools.call(actionOf({ kind: 'tool', tool: 'delete_note', arguments: { name: 'a' } }), never);
    expect(deleted.effects).toEqual([
      {
        type: 'fs_write',
        path: 'notes/a',
        operation: 'delete',
        before_sha256: 'sha256:3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3',
        after_sha256: null,
      },
    ]);
  });

  test('the journal has one line per effect and none for what did nothing', async () => {
    const lines: string[] = [];
    const tools = createDemoTools({ notes: { a: 'one' }, journal: (line) => void lines.push(line) });
    const act = (tool: string, args: JsonObject, signal = never) =>
      tools.call(actionOf({ kind: 'tool', tool, tool_call_id: `c-${tool}`, arguments: args }), signal);
    await act('read_note', { name: 'a' });
    await act('write_note', { name: 'b', text: 'x' });
    await act('delete_note', { name: 'missing' });
    await act('send_mail', { to: 'ana', text: 'hi' });
    await act('send_mail', { to: 'ana', text: 'hi' }, AbortSignal.abort());
    await act('send_mail', { to: 'ana' });
    expect(lines).toEqual([
      'write_note c-write_note {"name":"b","text":"x"}',
      'send_mail c-send_mail {"to":"ana","text":"hi"}',
    ]);
    expect(tools.outbox).toEqual([{ to: 'ana', text: 'hi' }]);
  });

  test('a call that is stopped while it takes its time has no effect', async () => {
    const stop = new AbortController();
    const tools = createDemoTools({ pause: async () => stop.abort() });
    const mail = actionOf({ kind: 'tool', tool: 'send_mail', arguments: { to: 'ana', text: 'hi' } });
    expect(await tools.call(mail, stop.signal)).toEqual({
      status: 'error',
      output: null,
      error: 'stopped before it ran',
      code: 'canceled',
    });
    expect(tools.outbox).toEqual([]);
  });

  test.each(['constructor', '__proto__', 'toString', 'nothing'])('%s is not a tool', async (tool) => {
    const result = await createDemoTools().call(actionOf({ kind: 'tool', tool }), never);
    expect(result).toEqual({ status: 'error', output: null, error: `there is no tool called ${tool}` });
  });
});
