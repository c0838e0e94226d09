/** The command an editor starts as its agent: the whole program, over its own input and output. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readLines } from '../../../src/transport/ndjson/ndjson.ts';
import { startChild } from '../../../src/transport/process/child.ts';
import { speak } from '../../support/acp/client.ts';
import { PROGRAM } from '../../support/process/cli.ts';

/** Loaded first by the child: opening a port or a socket file to listen on ends it. */
const NO_PORTS = `data:text/javascript,import net from 'node:net';
net.Server.prototype.listen = () => { console.error('it listens'); process.exit(70); };`;

test('an editor starts it, talks to the demo agent without any port being opened, and it ends with its input', {
  timeout: 60_000,
}, async () => {
  const data = await mkdtemp(join(tmpdir(), 'tollbridge-agent-'));
  onTestFinished(() => rm(data, { recursive: true, force: true }));
  const child = await startChild({
    command: [process.execPath, '--import', NO_PORTS, PROGRAM, 'acp-agent', '--agent', 'demo', '--data', data],
    cwd: data,
  });
  onTestFinished(() => child.close());
  let hear: (text: string) => void = () => {};
  (async () => {
    for await (const line of readLines(child.stdout, { limit: 1024 * 1024 })) hear(line);
  })();
  const editor = await speak({
    send: (text) => void child.stdin.write(`${text}\n`),
    onText: (ear) => {
      hear = ear;
    },
    close: async () => void child.stdin.end(),
  });
  const sessionId = await editor.session(data);
  expect((await editor.prompt(sessionId, 'hello')).stopReason).toBe('end_turn');
  expect(
    editor
      .updates('agent_message_chunk')
      .map(({ content }) => content.text)
      .join(''),
  ).toContain('demo agent');
  await editor.close();
  expect(await child.exited).toEqual({ code: 0, signal: null });
});
