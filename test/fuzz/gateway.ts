/**
 * A gateway in this process, in front of an agent and a tool that write down every act they really do. Outside of any test
 * runner, so that a long night of fuzzing needs none.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createIds, systemClock } from '../../src/core/clock.ts';
import type { Actor } from '../../src/model/actions.ts';
import { type CoreEvent, position } from '../../src/model/events.ts';
import { Fault } from '../../src/model/faults.ts';
import type { Skill } from '../../src/model/resources.ts';
import type { JsonObject } from '../../src/model/schema.ts';
import type { AgentBackend, Deps, Logger, Sink, ToolBackend } from '../../src/ports/index.ts';
import { comparableText } from '../../src/receipt/seal/canonical-json.ts';
import { openCoreRuntime } from '../../src/runtime/assemble.ts';
import { createHttpHost } from '../../src/transport/http/server.ts';
import { type Contact, violations } from '../support/oracle/oracle.ts';

export const OWNER: Actor = { id: 'fuzz', kind: 'person', scopes: ['*'] };
export const TOKEN = 'fuzz';

/** What the tool does with the word it is given: let through, refused, put to people, rewritten. */
const RULES = `
- { id: no, when: { tool: touch, arguments: { word: "*no*" } }, then: block, say: not that }
- { id: ask, when: { tool: touch, arguments: { word: "*ask*" } }, then: ask, say: a person decides }
- { id: other, when: { tool: touch, arguments: { word: "*other*" } }, then: modify, set: { word: safe }, say: another word }
- { id: yes, when: { tool: touch }, then: allow }
- { id: shell, when: { tool: bash }, then: allow }
- { id: prompts, when: { kind: [prompt, session.open] }, then: allow }
`;

export interface FuzzGateway {
  readonly runtime: Awaited<ReturnType<typeof openCoreRuntime>>;
  readonly workspace: string;
  readonly deps: Deps;
  readonly contacts: Contact[];
  /** Errors of ours that were logged. */
  readonly errors: string[];
  contact(tool: string, args: JsonObject, or?: Contact['or']): Promise<void>;
  /** What the oracle says about everything so far. */
  verdict(): Promise<string[]>;
  close(): Promise<void>;
}

export interface FuzzGatewayOptions {
  /** Agents besides the one in this process. */
  backends?(deps: Omit<Deps, 'authenticate' | 'jwks'>): Promise<readonly AgentBackend[]>;
}

export async function openGateway({ backends }: FuzzGatewayOptions = {}): Promise<FuzzGateway> {
  const dir = await mkdtemp(join(tmpdir(), 'tollbridge-fuzz-'));
  const contacts: Contact[] = [];
  const errors: string[] = [];
  const note = (fields: object, message: string) => {
    const { err } = fields as { err?: Error };
    errors.push(`${message}${err ? `: ${err.stack ?? err.message}` : ''}`);
  };
  const logger: Logger = { info() {}, warn() {}, error: note };

  async function contact(tool: string, args: JsonObject, or: Contact['or'] = []): Promise<void> {
    const tip = await runtime.store.tip({ of: 'all' });
    contacts.push({ tool, arguments: structuredClone(args), after: tip ? (position(tip) ?? 0) : 0, or });
  }

  const touch: Skill = {
    object: 'skill',
    id: 'touch',
    name: 'touch',
    created_at: NEVER,
    updated_at: NEVER,
    metadata: {},
  } as unknown as Skill;
  const tools: ToolBackend = {
    name: 'hands',
    list: async () => [touch],
    effect: () => 'write',
    async call({ tool = '', arguments: args }) {
      await contact(tool, args);
      return { status: 'ok', output: { touched: true } };
    },
  };
  const agent: AgentBackend = {
    name: 'agent',
    abilities: { resume: false, evidence: 'held' },
    start: async (work, sink: Sink) => ({
      done: (async () => {
        const word = JSON.stringify((work as unknown as { task: { input: unknown } }).task.input ?? null).slice(0, 200);
        await sink.act({ kind: 'tool', tool: 'touch', arguments: { word }, effect: 'write' }).catch(() => undefined);
        return { state: 'COMPLETED' as const };
      })(),
    }),
  };
  const ids = createIds();
  const http = createHttpHost({ requestId: () => ids.next('req'), log: logger, graceMs: 200 });
  const secret: Deps['secret'] = async (name) => {
    throw new Fault('not_found', `no secret ${name}`);
  };
  const outside = (await backends?.({ log: logger, clock: systemClock, ids, http, secret })) ?? [];
  const runtime = await openCoreRuntime({
    dataDir: dir,
    backends: [agent, ...outside],
    tools: [tools],
    policy: { load: async () => ({ rules: RULES, files: [] }) },
    settings: { askExpiresMs: 200, sweepMs: 200, graceMs: 200 },
    logger,
  });
  await runtime.start();
  const { resource } = await runtime.bridge.submit({
    kind: 'resource.create',
    actor: OWNER,
    body: { object: 'workspace', body: { name: 'w', root: 'harn://w' } },
  });
  const deps: Deps = {
    log: logger,
    clock: systemClock,
    ids,
    http,
    authenticate: async (bearer) => {
      if (bearer?.startsWith(TOKEN)) return OWNER;
      throw new Fault('unauthenticated', 'the token is not valid');
    },
    jwks: () => runtime.keyring.jwks(),
    sign: (said) => runtime.keyring.signer().sign(said),
    mac: (said) => runtime.keyring.signer().mac(said),
    lease: (name) => runtime.store.lease(name),
    secret,
  };
  return {
    runtime,
    workspace: resource.id,
    deps,
    contacts,
    errors,
    contact,
    async verdict() {
      await runtime.idle();
      // Taken before the log is read: an act that is seen while it is being read has its allow behind the place where reading ended.
      const seen = [...contacts];
      const kinds = ['decided', 'ask_opened', 'ask_closed', 'ask_used'].map((kind) => `vendor.tollbridge.${kind}`);
      const events: CoreEvent[] = [];
      for await (const event of runtime.store.read({ stream: { of: 'all' }, kinds })) events.push(event);
      const digest = (args: JsonObject) => runtime.keyring.signer().mac(comparableText(args));
      const found = violations(events, seen, digest);
      if (seen.length === 0) found.push('nothing was let through: the fuzzer tried nothing worth trying');
      return [...found, ...errors.map((error) => `logged: ${error}`)];
    },
    async close() {
      await http.close().catch(() => {});
      await runtime.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}
const NEVER = '2026-01-01T00:00:00.000Z';

export interface Fuzzed {
  readonly frames: number;
  readonly violations: string[];
}

/** At most so many at once; the first of each kind of error is enough. */
export async function inWindows<T>(all: Iterable<T>, size: number, work: (one: T) => Promise<void>): Promise<void> {
  let window: Promise<void>[] = [];
  for (const one of all) {
    window.push(work(one));
    if (window.length < size) continue;
    await Promise.all(window);
    window = [];
  }
  await Promise.all(window);
}

export async function within<T>(ms: number, what: Promise<T>): Promise<T | 'late'> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(resolve, ms, 'late');
  });
  try {
    return await Promise.race([what, late]);
  } finally {
    clearTimeout(timer);
  }
}
