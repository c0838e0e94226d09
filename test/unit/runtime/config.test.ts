import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { adapters } from '../../../adapters/index.ts';
import { mountsOf } from '../../../src/runtime/mounts/mounts.ts';
import { configIn } from '../../support/process/config-in.ts';

async function read(yaml?: string, env: NodeJS.ProcessEnv = {}) {
  const dir = await mkdtemp(join(tmpdir(), 'tb-config-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  if (yaml !== undefined) await writeFile(join(dir, 'tollbridge.yaml'), yaml);
  return { dir, config: await configIn(dir, { env: { TOLLBRIDGE_DATA: '/data', ...env } }) };
}

/** What is wrong, without the directory the test happens to run in. */
async function problem(yaml: string, then: (config: Awaited<ReturnType<typeof read>>['config']) => unknown = () => {}) {
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
    sign_in: { client_id: us, secret: oidc, scopes: [profile], roles_claim: groups, roles: { ops: admin } }
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
      signIn: {
        clientId: 'us',
        secret: 'oidc',
        scopes: ['profile'],
        rolesClaim: 'groups',
        roles: { ops: 'admin' },
      },
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
    'listen:\n  colour: x',
    'tollbridge.yaml:2:3: listen.colour is not known here; there are: host, port, drain, public_url, tls, allowed_hosts, allowed_origins',
  ],
  ['auth:\n  oauth:\n    issuer: x', 'tollbridge.yaml:3:5: auth.oauth.audience is missing'],
  [
    'vaults:\n  a: { provider: cloud }',
    'tollbridge.yaml:2:18: vaults.a.provider is "cloud", and has to be one of: env, file, store',
  ],
  ['vaults:\n  a: { provider: env, path: x }', 'tollbridge.yaml:2:29: path means nothing to the provider env'],
  [
    'vaults:\n  a: { provider: file, key_file: x, passphrase_env: Y }',
    'tollbridge.yaml:2:53: a vault has a key_file or a passphrase_env, not both',
  ],
  ['listen: { port: 99999 }', 'tollbridge.yaml:1:17: listen.port is 99999, and has to be 65535 or less'],
  ['listen: { port: four }', 'tollbridge.yaml:1:17: listen.port is "four", and has to be a whole number'],
  ['listen:', 'tollbridge.yaml:1:8: listen is empty; write what belongs there, or take it out'],
  [
    'listen: 4319',
    'tollbridge.yaml:1:9: listen has to be written as { host: ... }; there are: host, port, drain, public_url, tls, allowed_hosts, allowed_origins',
  ],
  ['demo: perhaps', 'tollbridge.yaml:1:7: demo is "perhaps", and has to be true or false'],
  [
    'listen: { public_url: gateway }',
    'tollbridge.yaml:1:23: listen.public_url is "gateway", and has to be like https://gateway.example',
  ],
  [
    'retention: { events: 90 }',
    'tollbridge.yaml:1:22: retention.events is 90, and has to be like 30s, 10m, 12h or 30d',
  ],
  [
    'agents:\n  Coder: {}',
    'tollbridge.yaml:2:3: agents.Coder cannot be a name: small letters, digits, _ and - only; write coder',
  ],
  [
    'rules:\n  - { id: reads, when: { effct: read }, then: allow }',
    'tollbridge.yaml:2:26: rules.reads.when.effct is not known here; did you mean effect?',
  ],
  ['listen: { prot: 80 }', 'tollbridge.yaml:1:11: listen.prot is not known here; did you mean port?'],
  ['store:\n\tpath: log.db', 'tollbridge.yaml:2:1: lines cannot be indented with tabs; write spaces'],
  [
    'store: { max_size: 1KB }',
    'tollbridge.yaml:1:20: store.max_size: 1KB is no size for a log; write 500MB, 10GB or 1TB',
  ],
  ['store: { wait: long }', 'tollbridge.yaml:1:16: store.wait: long is not a duration; write 500ms, 5s or 1m'],
  [
    'policies: [none.cedar]',
    /^tollbridge\.yaml:1:12: \S+none\.cedar cannot be read; write the name of a \.cedar or \.yaml file/,
  ],
  [
    `listen: { port: "\${PORT}" }`,
    `tollbridge.yaml:1:17: PORT is not set in the environment; set it, or write \${PORT:-...} with what to use instead`,
  ],
  [`listen: { port: \${PORT} }`, /^tollbridge\.yaml:1:\d+: .*; what stands in braces needs quotes: "\$\{NAME\}"$/],
  [
    'retention:\n  events: soon',
    'tollbridge.yaml:2:11: retention.events: soon is not a duration; write 30s, 10m, 12h or 30d',
  ],
  ['listen: [', 'tollbridge.yaml:1:10: a [ that was opened before is not closed; write ]'],
] as const)('a mistake is answered with its place: %j', async (yaml, said) => {
  const received = await problem(yaml);
  if (typeof said === 'string') expect(received).toBe(said);
  else expect(received).toMatch(said);
});

test('the environment fills in what is named, as text or as the number that is wanted, and is never shown', async () => {
  const yaml = `listen: { port: "\${PORT}", public_url: "https://\${HOST:-gateway.example}/x" }\nretention: { events: "$\${KEPT}d" }`;
  const problem = await read(yaml, { PORT: '80' }).catch((thrown) => (thrown as Error).message);
  expect(problem).toMatch(/retention\.events: \$\{KEPT\}d is not a duration/);
  const { config } = await read(yaml.split('\n')[0], { PORT: '80' });
  expect([config.port, config.publicUrl]).toEqual([80, 'https://gateway.example/x']);
  const wrong = await read(`listen: { port: "\${PORT}" }`, { PORT: 'hunter2' }).catch(
    (thrown) => (thrown as Error).message,
  );
  expect(wrong).toMatch(/listen\.port is "what the environment says", and has to be a whole number$/);
  const rules = `rules:\n  - { id: a, when: { tool: "\${NOBODY}" }, then: allow }`;
  expect((await read(rules)).config.written.rules).toMatchObject([{ when: { tool: `\${NOBODY}` } }]);
});

test('the log can have a file of its own, a limit, and timeout; another data directory has its own log', async () => {
  const yaml = 'data: kept\nstore: { path: fast/log.db, max_size: 2GB, wait: 500ms }';
  const { dir } = await read(yaml);
  const said = (more: object) => configIn(dir, more).then(({ store }) => store);
  const limits = { maxBytes: 2 * 1024 ** 3, lockTimeoutMs: 500 };
  expect(await said({})).toEqual({ path: join(dir, 'fast/log.db'), ...limits });
  expect(await said({ data: 'other' })).toEqual({ path: join(dir, 'other/log.db'), ...limits });
  expect((await read()).config.store).toEqual({ path: '/data/log.db' });
});

test('a file of heads is found from the configuration, wherever the gateway was started', async () => {
  const { dir, config } = await read('witness: { near: { file: heads.jsonl }, far: { file: /mnt/heads.jsonl } }');
  expect(config.witness).toEqual({ near: { file: join(dir, 'heads.jsonl') }, far: { file: '/mnt/heads.jsonl' } });
});

test('an agent that is named is one that is there', async () => {
  const mounts = (config: Parameters<typeof mountsOf>[0]) => mountsOf(config, adapters);
  expect(await problem('default_agent: coder', mounts)).toBe(
    'tollbridge.yaml:1:16: there is no agent coder; there are: demo, second',
  );
  expect(
    await problem('agents: { far: { harn: { url: "http://127.0.0.1:9" } } }\npersonas: { a: { agent: demo } }', mounts),
  ).toBe('tollbridge.yaml:2:25: there is no agent demo; there are: far');
});

test('a section for a door is held against what its adapter understands', async () => {
  const mounts = (config: Parameters<typeof mountsOf>[0]) => mountsOf(config, adapters);
  expect(await problem('doors:\n  harn:\n    json_limit: 5', mounts)).toBe(
    'tollbridge.yaml:3:17: doors.harn.json_limit is 5, and has to be 1024 or more',
  );
  expect(await problem('doors:\n  harn:\n    stream: { stall: 5 }', mounts)).toBe(
    'tollbridge.yaml:3:15: doors.harn.stream.stall is not known here; there are: keep_alive_ms, stall_ms, buffer_bytes, recheck_ms',
  );
  expect(await problem('doors:\n  gopher: {}', mounts)).toMatch(
    /^tollbridge\.yaml:2:3: there is no door gopher; there are: .*\bharn\b/,
  );
  const { config } = await read('doors: { harn: { files: [/srv] }, ahp: false }');
  const said = mounts(config).doors.map(({ name, shut }) => [name, !shut]);
  expect(said).toContainEqual(['ahp', false]);
  expect(said).toContainEqual(['harn', true]);
});

test('an agent, a tool server and a harness each have one section, in the words of the protocol spoken with them', async () => {
  const mounts = (config: Parameters<typeof mountsOf>[0]) => mountsOf(config, adapters);
  expect(await problem('agents:\n  far:\n    harn: { uri: "http://127.0.0.1:9" }', mounts)).toBe(
    'tollbridge.yaml:3:13: agents.far.harn.uri is not known here; did you mean url?',
  );
  expect(await problem('agents:\n  far:\n    gopher: {}', mounts)).toMatch(
    /^tollbridge\.yaml:3:13: agents\.far needs one section, named after the protocol spoken with it: .*\bharn\b/,
  );
  expect(await problem('agents:\n  far: {}', mounts)).toMatch(/^tollbridge\.yaml:2:8: agents\.far needs one section/);
  expect(await problem('harnesses:\n  guard: { ahp: {}, harn: {} }', mounts)).toBe(
    'tollbridge.yaml:2:10: harnesses.guard needs one section, named after the protocol spoken with it: ahp',
  );
  expect(await problem('agents:\n  far: 5', mounts)).toBe(
    'tollbridge.yaml:2:8: agents.far has to be written as { name: ... }',
  );
  const far = 'agents: { far: { harn: { url: "http://127.0.0.1:9" } } }';
  expect((await read(far)).config.demo).toBe(false);
  expect((await read(`${far}\ndemo: true`)).config.demo).toBe(true);
  expect((await read('')).config.demo).toBe(true);
});

test('beside its protocol an agent has what clients are told of it, a quota, and a switch', async () => {
  const { config } = await read(`
agents:
  far:
    a2a: { url: 'https://far.example' }
    quota: daily
    off: being repaired
    about: { icon_url: 'https://far.example/i.png', skills: [{ id: a, name: A, description: Does a. }] }
  near: { a2a: { url: 'https://near.example' }, off: true }
  plain: { a2a: { url: 'https://plain.example' }, off: false }
quotas: { daily: { limits: { usd: 5 }, per: 1d } }`);
  expect(Object.values(config.agents).map((section) => Object.keys(section))).toEqual([['a2a'], ['a2a'], ['a2a']]);
  expect(Object.fromEntries(config.agentTerms)).toEqual({
    far: {
      quota_id: 'quota_daily',
      off: 'being repaired',
      about: { icon_url: 'https://far.example/i.png', skills: [{ id: 'a', name: 'A', description: 'Does a.' }] },
    },
    near: { off: 'the configuration says so' },
  });
  expect(await problem('agents: { far: { a2a: { url: x }, quota: none } }')).toContain('there is no quota none');
  expect(await problem('agents: { far: { a2a: { url: x }, off: 5 } }')).toMatch(
    /^tollbridge.yaml:1:\d+: agents.far.off/,
  );
  expect(await problem('agents: { far: { a2a: { url: x }, about: { name: x } } }')).toContain('agents.far.about');
});
