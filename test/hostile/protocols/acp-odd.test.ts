/** Values that cannot become text are data like any other: the relay goes on, and nothing of them reaches the editor as an act. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { aDirectory, program } from '../../support/process/cli.ts';

const AGENT = fileURLToPath(new URL('../../support/upstreams/odd-agent.mjs', import.meta.url));

test('an agent whose texts are objects without a toString ends no relay, and two turns come to their end', async () => {
  const dir = await aDirectory();
  const { child, says, ended } = program(['--data', join(dir, 'data'), 'acp', '--', process.execPath, AGENT], {
    cwd: dir,
  });
  const send = (frame: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...frame })}\n`);
  const prompt = (id: number) =>
    send({ id, method: 'session/prompt', params: { sessionId: 's1', prompt: [{ type: 'text', text: 'go' }] } });
  send({ id: 1, method: 'initialize', params: { protocolVersion: 1, clientCapabilities: { terminal: true } } });
  await says(/"id":1,"result"/);
  send({ id: 2, method: 'session/new', params: { cwd: dir, mcpServers: [] } });
  await says(/"id":2,"result"/);
  for (const id of [3, 4]) {
    prompt(id);
    await says(new RegExp(`"id":${id},"result":\\{"stopReason":"end_turn"\\}`));
  }
  child.stdin.end();
  const { code, out } = await ended;
  expect(code).toBe(0);
  expect(out).not.toMatch(/"method":"(terminal|fs|_odd)\//);
});
