/** A gateway in a process of its own, made to be killed. Run with a directory; says what it waits for and stays. */
import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { openCoreRuntime } from '../../../src/runtime/assemble.ts';
import { scripted, type Toolbox, text, toolbox } from './script.ts';

export function createVictimAgent() {
  return scripted(
    'victim',
    async ({ sink }) => {
      await sink.emit(text('beginning'));
      await sink.act({ kind: 'tool', tool: 'write', tool_call_id: 'c1', arguments: { n: 1 } });
      await sink.act({ kind: 'tool', tool: 'ask', tool_call_id: 'c2', arguments: { n: 2 } });
      await sink.emit(text('finished'));
    },
    { resume: true },
  );
}

/** Tools that leave a line in a file each time they really run. */
export function createVictimTools(dir: string): Toolbox {
  const run = async (action: { tool?: string; arguments: { n?: unknown } }) => {
    await appendFile(join(dir, 'ran.txt'), `${action.tool} ${String(action.arguments.n)}\n`);
    return { status: 'ok' as const, output: null };
  };
  return toolbox('box', { write: run, ask: run });
}

async function main(dir: string): Promise<void> {
  const rules = '[{ id: ordinary, then: allow }, { id: people, when: { tool: ask* }, then: ask }]';
  const runtime = await openCoreRuntime({
    dataDir: dir,
    policy: { load: async () => ({ rules, files: [] }) },
    backends: [createVictimAgent()],
    tools: [createVictimTools(dir)],
  });
  await runtime.start();
  setInterval(() => {}, 60_000); // a gateway alone keeps no process alive; this one waits to be killed
  const { bridge, store } = runtime;
  const actor = { id: 'ana', kind: 'person', scopes: ['*'], interactive: true } as const;
  const body = { object: 'workspace', body: { name: 'w', root: 'file:///w' } } as const;
  const workspace = await bridge.submit({ kind: 'resource.create', actor, body });
  const at = { workspace_id: workspace.resource.id };
  const session = await bridge.submit({ kind: 'session.create', actor, body: at });
  const input = { role: 'user', parts: [{ type: 'text', text: 'go', visibility: 'public' }] };
  const asked = { session_id: session.resource.id, input };
  const task = await bridge.submit({ kind: 'task.submit', actor, body: asked });
  const stream = { of: 'task', id: task.resource.id } as const;
  for await (const { event, payload } of store.follow({ stream }, new AbortController().signal)) {
    if (event !== 'vendor.tollbridge.ask_opened') continue;
    process.stdout.write(`waiting ${task.resource.id} ${(payload.ask as { id: string }).id}\n`);
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await main(process.argv[2] as string);
