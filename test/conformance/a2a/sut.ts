/**
 * `npm run sut:a2a`: that agent behind the A2A door at the root of a port, for a test kit. Nobody is asked who they are,
 * because the kits bring no credentials: for a loopback port only, and only here.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type A2aConfig, settingsOf } from '../../../adapters/a2a/config.ts';
import { a2aDoor } from '../../../adapters/a2a/server/door.ts';
import { createIds, systemClock } from '../../../src/core/clock.ts';
import type { Actor } from '../../../src/model/actions.ts';
import { Fault } from '../../../src/model/faults.ts';
import type { AgentBackend, Closable } from '../../../src/ports/index.ts';
import { openCoreRuntime } from '../../../src/runtime/assemble.ts';
import { createHttpHost } from '../../../src/transport/http/server.ts';
import { tckAgent } from './agent.ts';

export interface Sut extends Closable {
  readonly url: string;
  readonly grpc: number | undefined;
}
export interface SutOptions {
  readonly port?: number;
  readonly config?: A2aConfig;
  readonly agent?: AgentBackend;
  /** Who holds which token. Without any, the caller without one is the kit. */
  readonly people?: Readonly<Record<string, Actor>>;
}

const KIT: Actor = { id: 'kit', kind: 'person', scopes: ['*', 'approvals:own'] };
const RULES = '- id: publishing\n  when: { tool: publish }\n  then: ask\n  say: a person decides what is published\n';

export async function startSut({ port = 0, config = {}, agent = tckAgent(), people }: SutOptions = {}): Promise<Sut> {
  const dir = await mkdtemp(join(tmpdir(), 'tollbridge-sut-'));
  const ids = createIds();
  const log = { info() {}, warn() {}, error: (fields: object, message: string) => console.error(message, fields) };
  const policy = { load: async () => ({ rules: RULES, files: [] }) };
  const runtime = await openCoreRuntime({ dataDir: dir, ids, logger: log, backends: [agent], policy });
  await runtime.start();
  const home = { object: 'workspace' as const, body: { name: 'sut', root: 'tollbridge://sut' } };
  await runtime.bridge.submit({ kind: 'resource.create', actor: KIT, body: home });
  const http = createHttpHost({ port, requestId: () => ids.next('req'), log, authenticated: true, graceMs: 200 });
  const door = await a2aDoor(settingsOf(config), {
    log,
    clock: systemClock,
    ids,
    http,
    authenticate: async (bearer) => {
      const known = people ? people[bearer ?? ''] : bearer === undefined ? KIT : undefined;
      if (!known) throw new Fault('unauthenticated', 'the token is not valid');
      return known;
    },
    jwks: () => runtime.keyring.jwks(),
    sign: (text) => runtime.keyring.signer().sign(text),
    mac: (text) => runtime.keyring.signer().mac(text),
    secret: async (name) => {
      throw new Fault('not_found', `no secret ${name}`);
    },
  }).open(runtime.bridge);
  const { url } = await http.listen();
  return {
    url,
    grpc: config.grpc?.port,
    async close() {
      await door.close();
      await http.close();
      await runtime.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({
    options: {
      port: { type: 'string', default: '9999' },
      'grpc-port': { type: 'string' },
      /** Which kit is coming: 1.0 wants a card without older members, 0.3 an agent that always asks. */
      kit: { type: 'string', default: '1.0' },
      legacy: { type: 'boolean' },
    },
  });
  const kit = values.kit === '0.3' ? '0.3' : '1.0';
  const grpcPort = values['grpc-port'];
  // The older kit takes only what looks like an address of HTTP for one.
  const named = kit === '0.3' ? { public: `http://127.0.0.1:${grpcPort}` } : {};
  const grpc = grpcPort ? { grpc: { port: Number(grpcPort), ...named } } : {};
  // The kits listen for webhooks on this machine.
  const push = { allow: ['localhost', '127.0.0.1'], insecure: true };
  const legacy = kit === '0.3' || values.legacy === true;
  // The older kit takes it for a mistake that nobody had to say who they are.
  const extended = kit === '0.3' ? { extended_card: false } : {};
  const sut = await startSut({
    port: Number(values.port),
    config: { legacy, push, ...grpc, ...extended },
    agent: tckAgent({ kit }),
  });
  console.log(`an agent for the ${kit} kit is at ${sut.url}`);
  await new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve());
  });
  await sut.close();
}
