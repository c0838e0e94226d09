/** What a gateway says when it starts: three lines, and all of what waits. */
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createDemoAgent } from '../../../src/demo/agent.ts';
import { createDemoTools } from '../../../src/demo/tools.ts';
import type { Actor } from '../../../src/model/actions.ts';
import { openCoreRuntime } from '../../../src/runtime/assemble.ts';
import { FIRST_RULES } from '../../../src/runtime/config/config.ts';
import { aDirectory, program, ran } from '../../support/process/cli.ts';

const ANA: Actor = { id: 'local:ana', kind: 'person', scopes: ['*'], door: 'cli' };
/** More than one page of anything. */
const MANY = 203;

async function manyQuestions(dataDir: string): Promise<void> {
  const runtime = await openCoreRuntime({
    dataDir,
    policy: { load: async () => ({ rules: FIRST_RULES, files: [] }) },
    backends: [createDemoAgent({ pause: async () => {} })],
    tools: [createDemoTools()],
  });
  try {
    await runtime.start();
    const { bridge } = runtime;
    const stop = new AbortController();
    const news = bridge.follow(ANA, { stream: { of: 'all' }, after: 'now' }, stop.signal);
    const body = { name: 'one', root: 'tollbridge://one' };
    await bridge.submit({
      kind: 'resource.create',
      actor: ANA,
      body: { object: 'workspace', id: 'workspace_1', body },
    });
    const submitted = Promise.all(
      Array.from({ length: MANY }, async () => {
        const session = await bridge.submit({
          kind: 'session.create',
          actor: ANA,
          body: { workspace_id: 'workspace_1' },
        });
        const input = { session_id: session.resource.id, input: { text: 'send the plan to ana' } };
        await bridge.submit({ kind: 'task.submit', actor: ANA, body: input });
      }),
    );
    let open = 0;
    for await (const { event } of news) {
      if (event === 'vendor.tollbridge.ask_opened') open += 1;
      if (open === MANY) break;
    }
    await submitted;
    stop.abort();
  } finally {
    await runtime.close();
  }
}

test('four lines: where it listens, the console, where the log is, how to answer; all that waits is counted', async () => {
  const dir = await aDirectory();
  await manyQuestions(dir);
  const { child, says, ended } = program(['--data', dir, 'serve', '--port', '0'], { cwd: dir });
  await says(/approvals {2}\(.*\)\n/);
  child.kill('SIGINT');
  const { code, out, err } = await ended;
  expect({ code, err }).toEqual({ code: 0, err: '' });
  const [listens = '', console = '', log = '', answers = '', ...rest] = out.split('\n');
  expect(listens).toMatch(/^tollbridge listens on http:\/\/127\.0\.0\.1:\d+ {2}\(token [\w-]{32}\)$/);
  expect(console).toMatch(/^Console: http:\/\/127\.0\.0\.1:\d+\/sign-in#[\w-]{32} {2}\(signs in once\)$/);
  expect(log).toBe(`Log: ${dir}; resumed ${MANY} tasks`);
  expect(answers).toMatch(new RegExp(`^Approvals: .* --data \\S+ approvals {2}\\(${MANY} pending\\)$`));
  expect(rest).toEqual(['', 'stopping: running work is ended, approvals stay pending', '']);
}, 90_000);

test('for programs it is one object, and nothing else', async () => {
  const dir = await aDirectory();
  const { child, says, ended } = program(['--data', dir, 'serve', '--port', '0', '--json'], { cwd: dir });
  const [line] = await says(/.*\n/);
  child.kill('SIGTERM');
  const { code, out } = await ended;
  expect({ code, out }).toEqual({ code: 0, out: line });
  expect(JSON.parse(out)).toEqual({
    object: 'gateway',
    url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
    token: expect.any(String),
    console: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/sign-in#[\w-]{32}$/),
    config: null,
    project: null,
    data: dir,
    waiting: 0,
    resumed: 0,
  });
});

test('a log that was put elsewhere is written there, and found there by every other command', async () => {
  const dir = await aDirectory();
  const config = join(dir, 'tollbridge.yaml');
  await writeFile(config, 'listen: { port: 0 }\ndata: kept\nstore: { path: fast/my.db, max_size: 100MB, wait: 2s }\n');
  const { child, says, ended } = program(['--config', config, 'serve']);
  await says(/approvals {2}\(.*\)\n/);
  child.kill('SIGINT');
  expect((await ended).out).toContain(`\nLog: ${join(dir, 'fast/my.db')}\n`);
  expect([existsSync(join(dir, 'fast/my.db')), existsSync(join(dir, 'kept/log.db'))]).toEqual([true, false]);
  expect(await ran(['--config', config, 'log'])).toMatchObject({
    code: 0,
    out: expect.stringContaining('loaded: 2 rules'),
  });
  expect(await ran(['--config', config, '--data', join(dir, 'other'), 'log'])).toMatchObject({ code: 3 });
});

test('a log that may not grow any further stops all work, and says why', async () => {
  const dir = await aDirectory();
  const location = { path: join(dir, 'log.db'), maxBytes: 400_000 };
  const runtime = await openCoreRuntime({
    dataDir: dir,
    store: location,
    backends: [createDemoAgent({ pause: async () => {} })],
  });
  try {
    await runtime.start();
    const body = { name: 'x'.repeat(100_000), root: 'tollbridge://one' };
    const fill = async () => {
      for (let index = 0; index < 20; index += 1) {
        const id = `workspace_${index}`;
        await runtime.bridge.submit({ kind: 'resource.create', actor: ANA, body: { object: 'workspace', id, body } });
      }
    };
    await expect(fill()).rejects.toMatchObject({ kind: 'unavailable' });
  } finally {
    await runtime.close();
  }
});
