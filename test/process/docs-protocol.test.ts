/** The adapter on the page about adding a protocol, exactly as it stands there, in a running gateway. */
import { execFile, spawn } from 'node:child_process';
import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';

const at = (path: string) => new URL(`../../${path}`, import.meta.url);

test('the page’s adapter works: its door shows what its agent says, and unauthenticated callers are not let in', async () => {
  const page = await readFile(at('docs/add-a-protocol.md'), 'utf8');
  const code = /```js\n([\s\S]*?)```/.exec(page)?.[1] ?? '';
  const dir = await mkdtemp(join(tmpdir(), 'tb-docs-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  const file = join(dir, 'shout.mjs');
  const here = code
    .replace("'tollbridge/gateway'", JSON.stringify(at('dist/src/runtime/gateway.js').href))
    .replace("'tollbridge'", JSON.stringify(at('dist/src/index.js').href));
  expect(here).not.toContain("from 'tollbridge");
  await writeFile(file, here);
  const [configure = '', start = '', call = ''] = (/```sh\n([\s\S]*?)```/.exec(page)?.[1] ?? '').split('\n');
  await promisify(execFile)('bash', ['-c', configure], { cwd: dir });
  await appendFile(join(dir, 'tollbridge.yaml'), 'listen: { port: 0 }\ndata: data\n');

  const child = spawn(process.execPath, [file], { cwd: dir, stdio: ['ignore', 'pipe', 'inherit'] });
  const gone = new Promise((resolve) => child.once('close', resolve));
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await gone;
  });
  let reported: RegExpExecArray | null = null;
  for await (const line of createInterface({ input: child.stdout })) {
    reported = /shout at (\S+) with token (\S+)/.exec(line);
    if (reported) break;
  }
  const [, url = '', token = ''] = reported ?? [];
  const say = (body: string, bearer = token) =>
    fetch(url, { method: 'POST', body, headers: { authorization: `Bearer ${bearer}` } });
  expect(await (await say('hello')).text()).toBe('POLLY WANTS A <CRACKER>\n');
  expect(start).toMatch(/^node shout\.mjs {2,}#/); // what was started above, with only the import paths changed
  const typed = call.replace('http://127.0.0.1:4319/shout', url);
  expect(typed).not.toBe(call);
  const received = await promisify(execFile)('bash', ['-c', typed], { env: { ...process.env, TOKEN: token } });
  expect(received.stdout).toBe('POLLY WANTS A <CRACKER>\n');
  expect((await say('hello', 'guess')).status).toBe(401);
  const silent = await say('');
  expect([silent.status, await silent.text()]).toEqual([400, 'say something\n']);
});
