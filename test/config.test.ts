import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { adapters } from '../adapters/index.ts';
import { readConfig } from '../src/config.ts';
import { mountsOf } from '../src/mounts.ts';

async function read(yaml?: string) {
  const dir = await mkdtemp(join(tmpdir(), 'tb-config-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  if (yaml !== undefined) await writeFile(join(dir, 'tollbridge.yaml'), yaml);
  return { dir, config: await readConfig({ env: { TOLLBRIDGE_DATA: '/data' }, cwd: dir }) };
}

/** What is wrong, without the directory the test happens to run in. */
async function complaint(
  yaml: string,
  then: (config: Awaited<ReturnType<typeof read>>['config']) => unknown = () => {},
) {
  try {
    then((await read(yaml)).config);
  } catch (thrown) {
    return (thrown as Error).message.replace(/^.*\/(?=tollbridge\.yaml)/, '');
  }
  return 'fine';
}

test('without a file: loopback, an encrypted file and named variables for secrets, nothing sent anywhere', async () => {
  const { config } = await read();
  expect(config).toMatchObject({
    file: undefined,
    host: '127.0.0.1',
    port: 4319,
    allowedHosts: [],
    allowedOrigins: [],
    oauth: undefined,
    traces: undefined,
    doors: {},
    vaults: [
      { name: 'local', provider: 'file', path: '/data/vaults/local.json', key: { file: '/data/vaults/local.key' } },
      { name: 'env', provider: 'env', prefix: 'TOLLBRIDGE_SECRET_' },
    ],
  });
});

test('everything that can be said arrives as it was said', async () => {
  const { dir, config } = await read(`
listen: { host: 0.0.0.0, port: 80, allowed_hosts: [gw.example], allowed_origins: ['https://console.example'] }
auth:
  oauth:
    issuer: https://login.example
    audience: [tollbridge, other]
    jwks_uri: https://login.example/keys
    tenant_claim: org
    workspaces_claim: rooms
    required_scopes: [agents]
    clock_tolerance: 30s
vaults:
  main: { provider: file, path: secrets.json, passphrase_env: OPEN_SESAME }
  ci: { provider: env, prefix: CI_ }
telemetry: { traces: { endpoint: 'http://localhost:4318/v1/traces', headers: { authorization: collector } } }
doors: { harn: { public_url: 'https://gw.example' }, ahp: false }
`);
  expect(config).toMatchObject({
    host: '0.0.0.0',
    port: 80,
    allowedHosts: ['gw.example'],
    allowedOrigins: ['https://console.example'],
    oauth: {
      issuer: 'https://login.example',
      audience: ['tollbridge', 'other'],
      jwks: 'https://login.example/keys',
      tenantClaim: 'org',
      workspacesClaim: 'rooms',
      requiredScopes: ['agents'],
      clockToleranceSeconds: 30,
    },
    vaults: [
      { name: 'main', provider: 'file', path: join(dir, 'secrets.json'), key: { passphraseEnv: 'OPEN_SESAME' } },
      { name: 'ci', provider: 'env', prefix: 'CI_' },
    ],
    traces: { endpoint: 'http://localhost:4318/v1/traces', headers: { authorization: 'collector' } },
    doors: { harn: { public_url: 'https://gw.example' }, ahp: false },
  });
});

test.each([
  [
    'listen:\n  hots: x',
    'tollbridge.yaml:2:9: configuration: /listen has no member "hots"; there are: host, port, public_url, allowed_hosts, allowed_origins',
  ],
  [
    'auth:\n  oauth:\n    issuer: x',
    "tollbridge.yaml:3:5: configuration: /auth/oauth must have required property 'audience'",
  ],
  [
    'vaults:\n  a: { provider: cloud }',
    'tollbridge.yaml:2:18: configuration: /vaults/a/provider must be one of env, file',
  ],
  ['vaults:\n  a: { provider: env, path: x }', 'tollbridge.yaml:2:29: path means nothing to the provider env'],
  [
    'vaults:\n  a: { provider: file, key_file: x, passphrase_env: Y }',
    'tollbridge.yaml:2:53: a vault has a key_file or a passphrase_env, not both',
  ],
  [
    'retention:\n  events: soon',
    'tollbridge.yaml:2:11: retention.events: soon is not a duration; write 30s, 10m, 12h or 30d',
  ],
  [
    'listen: [',
    'tollbridge.yaml:1:10: Flow sequence in block collection must be sufficiently indented and end with a ]',
  ],
])('a mistake is answered with its place: %j', async (yaml, said) => {
  expect(await complaint(yaml)).toBe(said);
});

test('a section for a door is held against what its adapter understands', async () => {
  const mounts = (config: Parameters<typeof mountsOf>[0]) => mountsOf(config, adapters);
  expect(await complaint('doors:\n  harn:\n    json_limit: 5', mounts)).toBe(
    'tollbridge.yaml:3:17: doors.harn: /json_limit must be >= 1024',
  );
  expect(await complaint('doors:\n  harn:\n    stream: { stall: 5 }', mounts)).toBe(
    'tollbridge.yaml:3:22: doors.harn: /stream has no member "stall"; there are: keep_alive_ms, stall_ms, buffer_bytes, recheck_ms',
  );
  expect(await complaint('doors:\n  gopher: {}', mounts)).toMatch(
    /^tollbridge\.yaml:2:11: there is no door gopher; there are: .*\bharn\b/,
  );
  const { config } = await read('doors: { harn: { files: [/srv] }, ahp: false }');
  const said = mounts(config).doors.map(({ adapter, open }) => [adapter.name, open]);
  expect(said).toContainEqual(['ahp', false]);
  expect(said).toContainEqual(['harn', true]);
});

test('an agent, a tool server and a harness each have one section, in the words of the protocol spoken with them', async () => {
  const mounts = (config: Parameters<typeof mountsOf>[0]) => mountsOf(config, adapters);
  expect(await complaint('agents:\n  far:\n    harn: { uri: "http://127.0.0.1:9" }', mounts)).toBe(
    "tollbridge.yaml:3:11: agents.far.harn: must have required property 'url'",
  );
  expect(await complaint('agents:\n  far:\n    gopher: {}', mounts)).toMatch(
    /^tollbridge\.yaml:3:13: agents\.far needs one section, named after the protocol spoken with it: .*\bharn\b/,
  );
  expect(await complaint('agents:\n  far: {}', mounts)).toMatch(/^tollbridge\.yaml:2:8: agents\.far needs one section/);
  expect(await complaint('harnesses:\n  guard: { ahp: {}, harn: {} }', mounts)).toBe(
    'tollbridge.yaml:2:10: harnesses.guard needs one section, named after the protocol spoken with it: ahp',
  );
  expect(await complaint('agents:\n  far: 5', mounts)).toMatch(/^tollbridge\.yaml:2:8: .*\/agents\/far must be object/);
  const far = 'agents: { far: { harn: { url: "http://127.0.0.1:9" } } }';
  expect((await read(far)).config.demo).toBe(false);
  expect((await read(`${far}\ndemo: true`)).config.demo).toBe(true);
  expect((await read('')).config.demo).toBe(true);
});
