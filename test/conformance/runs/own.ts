/**
 * A server of our own to examine: a real gateway, real keys and the runs door on a real port, with an agent that does what
 * the checks say. Everything is in a directory of its own and gone afterwards.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { settingsOf } from '../../../adapters/runs/config.ts';
import { runsDoor } from '../../../adapters/runs/server/door.ts';
import { openApiKeys } from '../../../src/auth/api-keys.ts';
import { createAuthenticator } from '../../../src/auth/authenticate.ts';
import { createIds, systemClock } from '../../../src/core/clock.ts';
import type { End } from '../../../src/model/commands.ts';
import { Fault } from '../../../src/model/faults.ts';
import type { AgentBackend, Closable, Sink, ToolBackend, Work } from '../../../src/ports/index.ts';
import { openCoreRuntime } from '../../../src/runtime/assemble.ts';
import { createHttpHost } from '../../../src/transport/http/server.ts';
import { pulledDisk } from '../../support/gateway/failing-store.ts';
import type { KeyName, TargetOptions, Word } from './target.ts';

export interface OwnServer extends Closable, Pick<TargetOptions, 'base' | 'key' | 'keys' | 'words'> {
  readonly broken: NonNullable<TargetOptions['broken']>;
}

const RULES = `
- { id: reads-are-fine, when: { tool: look }, then: allow, say: looking changes nothing }
- { id: a-person-decides, when: { tool: send }, then: ask, say: a person decides }
- { id: nothing-is-wiped, when: { tool: wipe }, then: block, say: nothing is wiped }
- { id: not-these, when: { kind: prompt, principal: denied }, then: block, say: no work for them }
`;
const WORDS: Readonly<Record<Word, string>> = {
  hello: 'hello',
  call: 'call',
  blocked: 'blocked',
  approve: 'approve',
  input: 'input',
  fail: 'fail',
  long: 'long',
  silent: 'silent',
};
const CONFIG = { stalled: { after_ms: 300, sweep_ms: 25 }, stream: { linger_ms: 50 } };
const QUIET = { info() {}, warn() {}, error() {} };

export async function startOwn(): Promise<OwnServer> {
  const dir = await mkdtemp(join(tmpdir(), 'tollbridge-runs-'));
  const disk = pulledDisk();
  const ids = createIds();
  const runtime = await openCoreRuntime({
    dataDir: dir,
    backends: [agent],
    tools: [tools],
    policy: { load: async () => ({ rules: RULES, files: [] }) },
    logger: QUIET,
    replace: { store: disk.wrap },
  });
  await runtime.start();
  const http = createHttpHost({ requestId: () => ids.next('req'), log: QUIET, graceMs: 200 });
  const door = await runsDoor(settingsOf(CONFIG), {
    log: QUIET,
    clock: systemClock,
    ids,
    http,
    authenticate: createAuthenticator({ files: dir, clock: systemClock }),
    jwks: () => runtime.keyring.jwks(),
    sign: (text) => runtime.keyring.signer().sign(text),
    secret: async (name) => {
      throw new Fault('not_found', `no secret ${name}`);
    },
  }).open(runtime.bridge);
  const { url } = await http.listen();

  const apiKeys = openApiKeys(dir, systemClock);
  async function issue(id: string, more: { scopes?: string[]; tenant_id?: string } = {}) {
    const actor = { id, kind: 'service' as const, scopes: ['*', 'approvals:own'], ...more };
    const { key, record } = await apiKeys.create({ name: id, actor });
    return { pair: key.replace(/^(tbk_[0-9a-f]+)_/, '$1:'), id: record.id };
  }
  const revoked = await issue('revoked');
  await apiKeys.revoke(revoked.id);
  const keys: Record<KeyName, string> = {
    other: (await issue('other', { tenant_id: 'elsewhere' })).pair,
    weak: (await issue('weak', { scopes: [] })).pair,
    denied: (await issue('denied')).pair,
    revoked: revoked.pair,
  };
  return {
    base: url,
    key: (await issue('conformance')).pair,
    keys,
    words: WORDS,
    async broken(during) {
      disk.down = true;
      try {
        return await during();
      } finally {
        disk.down = false;
      }
    },
    async close() {
      await door.close();
      await http.close();
      await runtime.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

const SKILL = {
  object: 'skill' as const,
  metadata: {},
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
  description: '',
  input_schema: null,
  output_schema: null,
};
const tools: ToolBackend = {
  name: 'box',
  list: async () => ['look', 'send', 'wipe'].map((name) => ({ ...SKILL, id: `skill_${name}`, name })),
  call: async (action) => ({ status: 'ok', output: { did: action.tool ?? '', note: 'x'.repeat(400) } }),
};

/** Does one thing for each word, and can go on after it was let go. */
const agent: AgentBackend = {
  name: 'examined',
  abilities: { resume: true, evidence: 'held' },
  start: async (work, sink, signal) => ({ done: perform(work, sink, signal) }),
};

async function perform({ task, resumed }: Work, sink: Sink, signal: AbortSignal): Promise<End> {
  const { parts } = task.input as { parts?: { text?: string }[] };
  const word = parts?.[0]?.text ?? '';
  const use = (tool: string) =>
    sink.act({ kind: 'tool', tool, tool_call_id: `${task.id}.c1`, arguments: { name: word } });
  switch (word) {
    case 'call':
      await use('look');
      break;
    case 'blocked':
      await use('wipe');
      break;
    case 'approve':
      await use('send');
      break;
    case 'input':
      await sink.ask({ kind: 'input', key: `${task.id}.q1`, question: 'Which colour?' });
      break;
    case 'fail':
      if (!task.parent_task_id) return { state: 'FAILED', failure: { code: 'told_to_fail', message: 'as told' } };
      break;
    case 'long':
    case 'silent':
      if (word === 'long' || !resumed) await aborted(signal);
      if (signal.aborted) return { state: 'CANCELED' };
      break;
    default:
  }
  await say(sink, task.id);
  return { state: 'COMPLETED' };
}

async function say(sink: Sink, taskId: string): Promise<void> {
  const id = `${taskId}.m1`;
  for (const text of ['It is ', 'done.']) {
    await sink.emit({ event: 'vendor.tollbridge.message_delta', payload: { message_id: id, role: 'assistant', text } });
  }
  const parts = [{ type: 'text', text: 'It is done.', visibility: 'public' }];
  await sink.emit({ event: 'agent.message', payload: { message: { id, role: 'assistant', parts } } });
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
