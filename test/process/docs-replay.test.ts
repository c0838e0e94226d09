/** What the page on replays tells people to type, typed in a shell about a task there is. */
import { readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { aLog, aShell } from '../support/process/cli.ts';
import { commandsIn, run, type Try } from '../support/process/typed-lines.ts';

const PAGE = resolve(import.meta.dirname, '../../docs/replay.md');

/** Every line of the page, and what comes of it. */
const TRIED: Readonly<Record<string, Try>> = {
  'tollbridge replay TASK': { until: /^replayed task_\S+ as task_replay_\S+: COMPLETED/ },
  'tollbridge replay TASK --keys': { until: /mcp:demo:task_\S+\.call1[\s\S]*llm:task_\S+\.llm1|llm:[\s\S]*mcp:demo:/ },
  'tollbridge replay TASK --override \'mcp:demo:TASK.call1={"text":"plan says: leap."}\' --visibility public': {
    until: /1 replaced:\n {2}replace mcp:demo:[\s\S]*\+ #\d+ {2}says agent:demo: plan says: leap\./,
  },
  "tollbridge replay TASK --override 'llm:TASK.llm1=@answer.json'": { until: /1 replaced:\n {2}replace llm:/ },
  'tollbridge replay TASK --from evt_0000000000000012': { until: /^replayed task_\S+ as task_replay_\S+: COMPLETED/ },
};

test('docs/replay.md', async () => {
  const lines = commandsIn(await readFile(PAGE, 'utf8'));
  expect(lines.toSorted()).toEqual(Object.keys(TRIED).toSorted());
  const { dir, tasks } = await aLog(['read plan']);
  const { cwd, env } = await aShell();
  await writeFile(join(cwd, 'answer.json'), JSON.stringify({ text: 'read plan' }));
  const where = { cwd, env: { ...env, XDG_CONFIG_HOME: join(cwd, '.config'), TOLLBRIDGE_DATA: dir } };
  for (const [line, how] of Object.entries(TRIED)) {
    const typed = line.replaceAll('TASK', tasks[0]!);
    const { code, said } = await run(typed, how, where);
    expect({ line, code, said }).toEqual({ line, code: 0, said: expect.stringMatching(how.until) });
  }
}, 60_000);
