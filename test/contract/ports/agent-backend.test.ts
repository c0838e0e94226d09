/** Every agent backend there is, held to the contract of the port. */
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { onTestFinished } from 'vitest';
import { acpBackend } from '../../../adapters/acp/client/backend.ts';
import { createDemoAgent } from '../../../src/demo/agent.ts';
import { createDemoTools } from '../../../src/demo/tools.ts';
import type { JsonObject } from '../../../src/model/schema.ts';
import type { Work } from '../../../src/ports/index.ts';
import { untilAborted } from '../../support/gateway/agents.ts';
import { workOf } from '../../support/gateway/demo-agent.ts';
import { says } from '../../support/gateway/test-gateway.ts';
import { farAgent, openFar, WORK_PROTOCOLS } from '../../support/gateway/two-gateways.ts';
import { real } from '../../support/harn/two-gateways.ts';
import { openRelay } from '../../support/wire/relay.ts';
import { type AgentUnderTest, agentBackendContract } from './agent-backend.ts';

const QUIET = { info() {}, warn() {}, error() {} };

/** A task and a session of its own for each id. */
function workWith(input: JsonObject, id: string, root = 'file:///w'): Work {
  const { task, session, ...rest } = workOf(input);
  const envelope = { created_at: task.created_at, updated_at: task.updated_at, metadata: {} };
  return {
    ...rest,
    task: { ...task, id: `task_${id}`, session_id: `session_${id}` },
    session: { ...session, id: `session_${id}` },
    workspace: { ...envelope, id: 'workspace_1', object: 'workspace', name: 'w', root },
  } as Work;
}

const demo = () => createDemoAgent({ pause: (_ms, signal) => untilAborted(signal), stepMs: 1 });
const WORDS = {
  says: { input: says('hello'), word: 'Hello' },
  waits: says('wait 20'),
  asks: says('send greetings to bo'),
  fails: says('fail broken_on_purpose'),
};

agentBackendContract('demo agent', async () => {
  let acted = 0;
  const backend = demo();
  return {
    backend: {
      ...backend,
      // The sink of the suite runs the demo tools; its outbox counts what was sent.
      start: (work, sink, signal) => {
        const counted = Object.create(sink) as typeof sink;
        counted.act = async (...args) => {
          const result = await sink.act(...args);
          if (result.kind === 'done') acted += 1;
          return result;
        };
        return backend.start(work, counted, signal);
      },
    },
    work: workWith,
    ...WORDS,
    acted: () => acted,
  } satisfies AgentUnderTest;
});

for (const protocol of WORK_PROTOCOLS) {
  agentBackendContract(`another gateway over ${protocol}`, async () => {
    const tools = createDemoTools();
    const relay = await openRelay('http://127.0.0.1:9');
    const rules = '[{ id: all, then: allow }, { id: mail, when: { tool: send_mail }, then: ask }]';
    const far = { agents: [demo()], tools: [tools], rules, clock: real as never };
    const { url, base } = await openFar(protocol, far, relay.url);
    relay.to(url);
    const backend = farAgent(protocol, base(relay.url), 1000);
    onTestFinished(() => backend.close?.());
    return {
      backend,
      work: workWith,
      ...WORDS,
      acted: () => tools.outbox.length,
      gone: async () => relay.to('http://127.0.0.1:9'),
    } satisfies AgentUnderTest;
  });
}

const AGENT = join(import.meta.dirname, '../../support/acp/agent.mjs');

agentBackendContract('ACP agent', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'tb-agent-'));
  const written = join(dir, 'a.txt');
  const program = join(dir, 'agent');
  await writeFile(program, `#!/bin/sh\nexec '${process.execPath}' '${AGENT}' '{}'\n`, { mode: 0o755 });
  let count = 0;
  const ids = { next: (prefix: string) => `${prefix}_${++count}` };
  const backend = acpBackend(
    'scripted',
    { command: [program] },
    { log: QUIET, clock: real, ids, secret: async () => 'x' },
  );
  onTestFinished(async () => {
    await backend.close?.();
    await rm(dir, { recursive: true, force: true });
  });
  const steps = (...all: object[]) => says(JSON.stringify(all));
  return {
    backend,
    work: (input, id) => workWith(input, id, pathToFileURL(dir).href),
    says: { input: says('hello'), word: 'hello' },
    waits: steps({ say: 'waiting' }, { untilCanceled: true }),
    asks: steps({ ask: 'fs/write_text_file', params: { path: written, content: 'x' } }),
    fails: steps({ error: { code: -32603, message: 'broken on purpose' } }),
    acted: () => (existsSync(written) ? 1 : 0),
    gone: () => rm(program),
  } satisfies AgentUnderTest;
});
