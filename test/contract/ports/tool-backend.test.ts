/** Every tool backend there is, held to the contract of the port. */
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { UpstreamConfig } from '../../../adapters/mcp/config.ts';
import { mcp } from '../../../adapters/mcp/index.ts';
import { createIds, systemClock } from '../../../src/core/clock.ts';
import { createDemoTools } from '../../../src/demo/tools.ts';
import type { Deps, ToolBackend } from '../../../src/ports/index.ts';
import { eventually } from '../../support/eventually.ts';
import { latch, untilAborted } from '../../support/gateway/agents.ts';
import { openUpstream, text } from '../../support/mcp/upstream.ts';
import { type ToolsUnderTest, toolBackendContract } from './tool-backend.ts';

toolBackendContract('demo tools', async () => {
  const effects: string[] = [];
  const begun = latch();
  const backend = createDemoTools({
    journal: (line) => void effects.push(line.split(' ')[0] ?? ''),
    async pause(signal) {
      if (!waiting) return;
      waiting = false;
      begun.open();
      await untilAborted(signal);
    },
  });
  let waiting = false;
  return {
    backend,
    works: { tool: 'write_note', arguments: { name: 'a', text: 'b' }, says: 'a is written' },
    fails: { tool: 'read_note', arguments: { name: 'nowhere' } },
    get waits() {
      waiting = true;
      return { tool: 'write_note', arguments: { name: 'late', text: 'x' }, begun: () => begun.promise };
    },
    calls: () => effects,
  };
});

for (const era of ['modern', 'legacy'] as const) {
  toolBackendContract(`MCP over HTTP, ${era} era`, async () => {
    const called: string[] = [];
    const begun = latch();
    const noted = (tool: string, run: (args: { text?: string }) => unknown) => ({
      call: ({ args }: { args: { text?: string } }) => {
        called.push(tool);
        return run(args);
      },
    });
    const upstream = await openUpstream({
      eras: [era],
      tools: {
        echo: noted('echo', ({ text: said = '' }) => text(said)),
        broken: noted('broken', () => ({ ...text('it is broken'), isError: true })),
        slow: {
          call({ ctx }) {
            called.push('slow');
            begun.open();
            return untilAborted(ctx.mcpReq.signal).then(() => text('stopped'));
          },
        },
      },
    });
    const backend = opened({ url: upstream.url });
    onTestFinished(async () => {
      await backend.close?.();
      await upstream.close();
    });
    return {
      backend,
      works: { tool: 'echo', arguments: { text: 'hello' }, says: 'hello' },
      fails: { tool: 'broken', arguments: {} },
      waits: { tool: 'slow', arguments: {}, begun: () => begun.promise },
      calls: () => called,
      gone: () => upstream.close(),
    } satisfies ToolsUnderTest;
  });
}

const SERVER = join(import.meta.dirname, '../../support/upstreams/three-tools.mjs');

toolBackendContract('MCP over standard input and output', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'tb-tools-'));
  const journal = join(dir, 'calls');
  const calls = () => (existsSync(journal) ? readFileSync(journal, 'utf8').split('\n').filter(Boolean) : []);
  const backend = opened({ command: [process.execPath, SERVER, journal] });
  onTestFinished(async () => {
    await backend.close?.();
    await rm(dir, { recursive: true, force: true });
  });
  return {
    backend,
    works: { tool: 'echo', arguments: { text: 'hello' }, says: 'hello' },
    fails: { tool: 'broken', arguments: {} },
    waits: { tool: 'slow', arguments: {}, begun: () => eventually(() => calls().includes('slow'), 'the call of slow') },
    calls,
  } satisfies ToolsUnderTest;
});

function opened(config: UpstreamConfig): ToolBackend {
  const deps = {
    log: { info() {}, warn() {}, error() {} },
    clock: systemClock,
    ids: createIds(),
    secret: async (name: string) => {
      throw new Error(`no secret ${name}`);
    },
    jwks: () => ({}),
  } as unknown as Deps;
  return mcp.parts.tools.open(config as never, { ...deps, name: 'u' });
}
