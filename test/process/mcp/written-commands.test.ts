/** The commands that `tollbridge init` writes, started as a client starts them: all at once, on a data directory that is new. */
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { init } from '../../../src/cli/commands/start/init.ts';
import { EVERYTHING } from '../../support/mcp/command.ts';
import { echo, openUpstream } from '../../support/mcp/upstream.ts';
import { startSpeaking } from '../../support/process/stdio-process.ts';

interface Entry {
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

test('servers of one program and a server at an address are all there, and each has its own name', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'tb-written-'));
  const upstream = await openUpstream({ tools: { echo } });
  onTestFinished(async () => {
    await upstream.close();
    await rm(dir, { recursive: true, force: true, maxRetries: 3 });
  });
  const [command, ...args] = EVERYTHING;
  const token = 'Bearer of-a-token-that-nobody-knows';
  const settings = join(dir, 'mcp.json');
  const web = { url: upstream.url, headers: { Authorization: token } };
  await writeFile(settings, JSON.stringify({ mcpServers: { one: { command, args }, two: { command, args }, web } }));
  const data = join(dir, 'data');
  const config = join(dir, 'tollbridge.yaml');
  await writeFile(config, 'rules:\n  - { id: all, when: {}, then: allow }\n');
  const out = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  await init('cursor', [], { settings, data, config, write: true }).finally(() => out.mockRestore());
  const { mcpServers } = JSON.parse(await readFile(settings, 'utf8')) as { mcpServers: Record<string, Entry> };

  const started = Object.entries(mcpServers).map(([name, { args, env }]) => {
    // The words after our own program, however this test process was started.
    const words = args.slice(args.indexOf('--config'));
    return { name, ...startSpeaking(words, env ? { env } : {}) };
  });
  const tools = await Promise.all(
    started.map(async ({ end }) => {
      const clientInfo = { name: 'a-client', version: '1' };
      await end.ask('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo });
      end.notify('notifications/initialized', {});
      const { result } = await end.ask('tools/list', {});
      return ((result?.tools ?? []) as readonly unknown[]).length;
    }),
  );
  expect(tools).toEqual([expect.any(Number), expect.any(Number), 1]);
  const [, , there] = started;
  const called = await there?.end.ask('tools/call', { name: 'echo', arguments: { text: token } });
  expect(called?.result?.isError).toBeUndefined();
  expect(upstream.asked.every(({ headers }) => headers.authorization === token)).toBe(true);
  for (const { child, exited } of started) {
    child.stdin.end();
    expect((await exited).code).toBe(0);
  }
  // The server sent the token back; the log has the call and not the token.
  const files = await readdir(data, { recursive: true, withFileTypes: true });
  const kept = await Promise.all(
    files.filter((each) => each.isFile()).map(({ parentPath, name }) => readFile(join(parentPath, name), 'latin1')),
  );
  expect(kept.some((text) => text.includes('tool.completed'))).toBe(true);
  expect(kept.some((text) => text.includes('of-a-token-that-nobody-knows'))).toBe(false);
});
