/** The command an editor starts as its agent: the whole program, over its own input and output. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { Task } from '../../../src/model/resources.ts';
import type { Row } from '../../../src/ports/index.ts';
import { openCoreRuntime } from '../../../src/runtime/assemble.ts';
import { readLines } from '../../../src/transport/ndjson/ndjson.ts';
import { startChild } from '../../../src/transport/process/child.ts';
import { speak } from '../../support/acp/client.ts';
import { PROGRAM } from '../../support/process/cli.ts';
import { PROJECT } from '../../support/process/project.ts';

/** Loaded first by the child: opening a port or a socket file to listen on ends it. */
const NO_PORTS = `data:text/javascript,import net from 'node:net';
net.Server.prototype.listen = () => { console.error('it listens'); process.exit(70); };`;

async function start(...words: readonly string[]) {
  const data = await mkdtemp(join(tmpdir(), 'tollbridge-agent-'));
  onTestFinished(() => rm(data, { recursive: true, force: true }));
  const errors: string[] = [];
  const child = await startChild({
    command: [process.execPath, '--import', NO_PORTS, PROGRAM, 'acp-agent', ...words, '--data', data],
    cwd: data,
    onStderr: (line) => errors.push(line),
  });
  onTestFinished(() => child.close());
  let hear: (text: string) => void = () => {};
  (async () => {
    for await (const line of readLines(child.stdout, { limit: 1024 * 1024 })) hear(line);
  })();
  const line = {
    send: (text: string) => void child.stdin.write(`${text}\n`),
    onText: (ear: (text: string) => void) => {
      hear = ear;
    },
    close: async () => void child.stdin.end(),
  };
  return { data, child, line, errors };
}

test('an editor starts it, talks to the demo agent without any port being opened, and it ends with its input', {
  timeout: 60_000,
}, async () => {
  const { data, child, line } = await start('--agent', 'demo');
  const editor = await speak(line);
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

test('the section doors.acp applies to it, and a door that is shut stays shut', { timeout: 60_000 }, async () => {
  const dir = await mkdtemp(join(tmpdir(), 'tollbridge-agent-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  const config = join(dir, 'tollbridge.yaml');
  await writeFile(config, 'doors: { acp: { agent: second, harn: on, provider_catalog: { schema_version: 2 } } }\n');
  const { data, line } = await start('--config', config);
  const editor = await speak(line);
  expect(await editor.call('_harn/providerCatalog')).toEqual({ schema_version: 2 });
  const { configOptions } = await editor.call('session/new', { cwd: data, mcpServers: [] });
  expect(configOptions[0].currentValue).toBe('second');

  await writeFile(config, 'doors: { acp: false }\n');
  const shut = await start('--config', config);
  expect((await shut.child.exited).code).not.toBe(0);
  expect(shut.errors.join('\n')).toContain('doors.acp is false in the configuration');
});

test('work goes on without its editor where the configuration says so: the process ends after it, or on a signal', {
  timeout: 60_000,
}, async () => {
  const dir = await mkdtemp(join(tmpdir(), 'tollbridge-agent-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  const config = join(dir, 'tollbridge.yaml');
  const agent = JSON.stringify([process.execPath, join(PROJECT, 'test/support/acp/agent.mjs')]);
  await writeFile(
    config,
    `doors: { acp: { on_disconnect: continue } }\nagents: { slow: { acp: { command: ${agent} } } }\nrules: [{ id: all, then: allow }]\n`,
  );
  const states = async (data: string) => {
    const runtime = await openCoreRuntime({ dataDir: data });
    const tasks = await runtime.store.list<Task & Row>({ object: 'task' });
    await runtime.close();
    return tasks.map(({ status }) => status);
  };
  /** Begins work in which the agent says one word and goes on when this file is there; the editor leaves after the word. */
  const leave = async (file: string) => {
    const { data, child, line } = await start('--config', config);
    const editor = await speak(line);
    const wait = `[ ! -e ${file} ] && while [ ! -e ${file} ]; do sleep 0.05; done`;
    const steps = [{ say: 'word' }, { terminal: { command: 'sh', args: ['-c', wait] } }];
    const sessionId = await editor.session(data);
    void editor.prompt(sessionId, JSON.stringify(steps)).catch(() => {});
    await editor.next(({ params }) => params?.update?.sessionUpdate === 'agent_message_chunk');
    await editor.close();
    return { data, child };
  };
  const first = await leave(join(dir, 'go'));
  await writeFile(join(dir, 'go'), '');
  expect(await first.child.exited).toEqual({ code: 0, signal: null });
  expect(await states(first.data)).toEqual(['COMPLETED']);

  const second = await leave(join(dir, 'never'));
  process.kill(second.child.pid, 'SIGTERM');
  expect(await second.child.exited).toEqual({ code: 0, signal: null });
  expect(await states(second.data)).toEqual(['CANCELED']);
});
