/**
 * A gateway of our own: the built program as a process, in a directory of its own, with keys for everyone the checks
 * speak for. It can be killed and started again on the same data. Ended by its process id and nothing else.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { openApiKeys } from '../../../../src/auth/api-keys.ts';
import { systemClock } from '../../../../src/core/clock.ts';
import { createCheckpoints } from '../../../../src/receipt/seal/checkpoints.ts';
import { openCoreRuntime } from '../../../../src/runtime/assemble.ts';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const START_MS = 90_000;
/** What deliveries are signed with. */
export const WEBHOOK_SECRET = 'a-secret-for-conformance-only';
/** The same for a tenant that was granted it. */
export const GRANTED_SECRET = 'another-secret-for-conformance';

export interface Holder {
  readonly id: string;
  readonly scopes?: readonly string[];
  readonly tenant?: string;
  readonly workspaces?: readonly string[];
  readonly expires_at?: string;
}

export interface OwnGateway {
  readonly url: string;
  /** A new key for someone, good at once. */
  issue(holder: Holder): Promise<{ readonly key: string; readonly id: string }>;
  revoke(id: string): Promise<void>;
  /** An access token as the configured issuer would make it. */
  token(
    claims: Readonly<Record<string, unknown>>,
    how?: { readonly kid?: string; readonly expires?: string },
  ): Promise<string>;
  /** One line for every effect a tool really had. */
  effects(): Promise<readonly string[]>;
  /** Killed without warning, then started again on the same data. */
  crash(): Promise<void>;
  /** Stopped, every event of what has ended let go as a short retention would, then started again. */
  forget(): Promise<void>;
  /** Everything it wrote to its output. */
  output(): string;
  close(): Promise<void>;
}

export interface OwnOptions {
  /** Runs the sources instead of the build. */
  readonly source?: boolean;
}

export async function startOwn({ source = false }: OwnOptions = {}): Promise<OwnGateway> {
  const built = join(ROOT, 'dist/src/main.js');
  if (!source && !existsSync(built)) throw new Error('there is no build; run `npm run build` first');
  const dir = await mkdtemp(join(tmpdir(), 'tollbridge-conformance-'));
  const data = join(dir, 'data');
  const journal = join(dir, 'effects.log');
  const issuer = await startIssuer();
  const config = join(dir, 'tollbridge.yaml');
  await writeFile(config, configText(issuer.url));
  const program = source ? ['--import', 'tsx', join(ROOT, 'src/main.ts')] : [built];
  const keys = openApiKeys(data, { now: () => new Date().toISOString() });
  let running = await start('0');
  const { url } = running;

  async function start(port: string): Promise<{ child: ChildProcess; url: string; output: () => string }> {
    const args = [...program, '--config', config, '--data', data, 'serve', '--port', port, '--journal', journal];
    const env = {
      ...process.env,
      CONFORMANCE_WEBHOOK: WEBHOOK_SECRET,
      SHARED_hook_one: GRANTED_SECRET,
      SHARED_narrow_one: GRANTED_SECRET,
    };
    const child = spawn(process.execPath, args, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    return await new Promise((resolve, reject) => {
      const late = setTimeout(() => fail('did not start in time'), START_MS);
      const fail = (why: string) => {
        clearTimeout(late);
        child.kill('SIGKILL');
        reject(new Error(`the gateway ${why}: ${output.slice(-2000)}`));
      };
      const hear = (chunk: Buffer) => {
        output += String(chunk);
        const found = /listens on (http:\S+)/.exec(output)?.[1];
        if (!found) return;
        clearTimeout(late);
        child.off('exit', gone);
        resolve({ child, url: found, output: () => output });
      };
      const gone = (code: number | null) => fail(`ended with ${code}`);
      child.stdout.on('data', hear);
      child.stderr.on('data', hear);
      child.once('exit', gone);
    });
  }

  return {
    url,
    // The suite has one key for everything: it also approves what the agent does for it.
    async issue({ id, scopes = ['*', 'approvals:own'], tenant, workspaces, expires_at }) {
      const actor = {
        id,
        kind: 'service' as const,
        scopes: [...scopes],
        ...(tenant && { tenant_id: tenant }),
        ...(workspaces && { workspaces: [...workspaces] }),
      };
      const { key, record } = await keys.create({ name: id, actor, ...(expires_at && { expires_at }) });
      return { key, id: record.id };
    },
    async revoke(id) {
      await keys.revoke(id);
    },
    token: issuer.token,
    async effects() {
      const lines = existsSync(journal) ? await readFile(journal, 'utf8') : '';
      return lines.split('\n').filter((line) => line !== '');
    },
    async crash() {
      await ended(running.child, 'SIGKILL');
      const before = running.output();
      running = await start(new URL(url).port);
      const { output } = running;
      running = { ...running, output: () => before + output() };
    },
    async forget() {
      await ended(running.child, 'SIGTERM');
      const runtime = await openCoreRuntime({ dataDir: data });
      try {
        // As upkeep does: only events whose leaves are in the log's tree are dropped.
        const { store, log, keyring } = runtime;
        await createCheckpoints({ store, log, signer: keyring.signer(), clock: systemClock }).take({});
        await store.retain('9999-01-01T00:00:00.000Z');
      } finally {
        await runtime.close();
      }
      const before = running.output();
      running = await start(new URL(url).port);
      const { output } = running;
      running = { ...running, output: () => before + output() };
    },
    output: () => running.output(),
    async close() {
      try {
        await ended(running.child, 'SIGTERM');
      } finally {
        await issuer.close();
        await rm(dir, { recursive: true, force: true });
      }
    },
  };
}

/** Who is believed, and rules the checks count on: reading is fine, what leaves the gateway is asked about, and one tool is closed. */
function configText(issuer: string): string {
  return [
    `auth: { oauth: { issuer: '${issuer}', audience: tollbridge, jwks_uri: '${issuer}/jwks' } }`,
    'vaults:',
    '  env: { provider: env, prefix: CONFORMANCE_ }',
    '  shared:',
    '    provider: env',
    '    prefix: SHARED_',
    '    access:',
    '      - { tenants: [granted], secrets: ["hook_o*"] }',
    '      - { tenants: [granted], personas: [reviewer], secrets: [narrow_one] }',
    'personas: { reviewer: { agent: demo } }',
    'retention: { events: 30d }',
    'rules:',
    '  - { id: reads-are-fine, when: { effect: read }, then: allow, say: reading changes nothing }',
    '  - { id: notes-are-written, when: { effect: write }, then: allow, say: notes are there to be written }',
    '  - { id: outside-needs-a-person, when: { effect: [send, publish, pay] }, then: ask, say: a person decides }',
    '  - { id: work-is-handed-on, when: { kind: handoff }, then: allow, say: agents may share work }',
    '  - { id: hosts-run-their-tools, when: { server: host }, then: allow, say: a host runs what it offered }',
    '  - { id: nothing-is-deleted, when: { effect: delete }, then: block, say: notes are kept }',
    '',
  ].join('\n');
}

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.kill(signal);
  const late = setTimeout(() => child.kill('SIGKILL'), 10_000);
  await gone;
  clearTimeout(late);
}

/** An authorization server that publishes one key, for tokens of the second kind. */
async function startIssuer() {
  const { publicKey, privateKey } = await generateKeyPair('ES256');
  const outsider = await generateKeyPair('ES256');
  const jwk = { ...(await exportJWK(publicKey)), kid: 'conformance', alg: 'ES256', use: 'sig' };
  const server: Server = createServer((_, response) => {
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ keys: [jwk] }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    async token(
      claims: Readonly<Record<string, unknown>>,
      how: { readonly kid?: string; readonly expires?: string } = {},
    ) {
      const { kid = 'conformance', expires = '5m' } = how;
      return await new SignJWT({ iss: url, aud: 'tollbridge', ...claims })
        .setProtectedHeader({ alg: 'ES256', kid })
        .setIssuedAt()
        .setExpirationTime(expires)
        .sign(kid === 'conformance' ? privateKey : outsider.privateKey);
    },
    async close() {
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
