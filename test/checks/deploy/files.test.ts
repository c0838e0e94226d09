/** The container, the manifests and the unit of docs/deploy.md: their schemas, what keeps the gateway in bounds, and that they fit each other. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { adapters } from '../../../adapters/index.ts';
import { loadPolicies } from '../../../src/policy/rules/load.ts';
import { readConfig } from '../../../src/runtime/config/config.ts';
import { mountsOf } from '../../../src/runtime/mounts/mounts.ts';
import { PROJECT } from '../../support/process/project.ts';
import { DEPLOY, said, sectionsOf, stagesOf, textOf, yamlOf } from './files.ts';
import { composeSchema, mistakesIn } from './schemas.ts';

const run = promisify(execFile);
const MANIFESTS = (await readdir(join(DEPLOY, 'kubernetes'))).filter(
  (name) => name.endsWith('.yaml') && !['kustomization.yaml', 'tollbridge.yaml'].includes(name),
);

describe('the configuration', () => {
  test('is one, with rules that load, and takes as many connections from the proxy as from everyone', async () => {
    const config = await readConfig({ file: join(DEPLOY, 'tollbridge.yaml'), env: {}, cwd: PROJECT });
    expect(mountsOf(config, adapters).agents.length).toBe(1);
    await expect(config.policy.load().then(loadPolicies)).resolves.toBeDefined();
    const { limits } = yamlOf('tollbridge.yaml');
    expect(limits.connections_per_address).toBe(limits.connections);
  });

  test('of the manifests is the same: kustomize reads no file outside its folder', () => {
    const body = (text: string) => text.slice(text.indexOf('\n'));
    expect(body(textOf('kubernetes/tollbridge.yaml'))).toBe(body(textOf('tollbridge.yaml')));
  });
});

describe('compose.yaml', () => {
  const compose = yamlOf('compose/compose.yaml');
  const { gateway, proxy } = compose.services;
  const at = (path: string) => resolve(DEPLOY, 'compose', path);

  test('fits the Compose specification', async () => {
    const valid = await composeSchema();
    const { name: _, ...rest } = compose; // newer than the published schema
    expect(valid(rest), JSON.stringify(valid.errors)).toBe(true);
    expect(valid({ ...rest, services: { gateway: { ...gateway, red_only: true } } })).toBe(false);
  });

  test('keeps the gateway in bounds: no root, nothing writable but its data, no privileges', () => {
    expect(gateway).toMatchObject({
      read_only: true,
      user: '10001:10001',
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
      init: true,
    });
    expect(gateway.ports).toBeUndefined();
    expect(gateway.volumes).toEqual([
      'data:/var/lib/tollbridge',
      '../tollbridge.yaml:/etc/tollbridge/tollbridge.yaml:ro',
    ]);
  });

  test('names files that exist, the port of the configuration, and secrets of the environment only', () => {
    expect(existsSync(at(gateway.build.context))).toBe(true);
    expect(existsSync(join(at(gateway.build.context), gateway.build.dockerfile))).toBe(true);
    for (const path of ['../tollbridge.yaml', './nginx.conf']) expect(existsSync(at(path)), path).toBe(true);
    expect(proxy.volumes[0]).toBe('./nginx.conf:/etc/nginx/nginx.conf:ro');
    expect(gateway.expose).toEqual(['4319']);
    for (const value of Object.values(gateway.environment)) expect(value).toMatch(/^\$\{[A-Z_]+:\?/);
    expect(yamlOf('tollbridge.yaml').agents.writer.harn.secret).toBe('WRITER_TOKEN');
    expect(Object.keys(gateway.environment)).toEqual(['SECRET_WRITER_TOKEN']);
  });

  test('the proxy passes on streams and upgrades, and never sends a request twice', () => {
    const conf = textOf('compose/nginx.conf');
    const directives = conf.split('\n').map((line) => line.trim().replaceAll(/\s+/g, ' '));
    for (const wanted of [
      'set $gateway gateway:4319;',
      'proxy_pass http://$gateway;',
      'proxy_http_version 1.1;',
      'proxy_set_header Host $host;',
      'proxy_set_header Upgrade $http_upgrade;',
      'proxy_set_header Connection $connection_upgrade;',
      'proxy_buffering off;',
      'proxy_next_upstream off;',
      'server_name gateway.example;',
    ])
      expect(directives).toContain(wanted);
    expect(conf.split('{').length).toBe(conf.split('}').length);
    expect(directives.filter((line) => line && !line.startsWith('#') && !/[;{}]$/.test(line))).toEqual([]);
    expect(yamlOf('tollbridge.yaml').listen.allowed_hosts).toEqual(['gateway.example']);
  });
});

describe('the manifests', () => {
  const deployment = yamlOf('kubernetes/deployment.yaml');
  const pod = deployment.spec.template.spec;
  const [container] = pod.containers;

  test('are resources of Kubernetes, member by member', { timeout: 120_000 }, async () => {
    const manifests = Object.fromEntries(MANIFESTS.map((name) => [name, textOf(`kubernetes/${name}`)]));
    const misspelled = textOf('kubernetes/deployment.yaml').replace('readOnlyRootFilesystem', 'readOnlyRootFileSystem');
    const mistakes = await mistakesIn({ ...manifests, 'misspelled.yaml': misspelled });
    expect(mistakes.filter((line) => !line.startsWith('misspelled.ts'))).toEqual([]);
    expect(mistakes.join('\n')).toContain('readOnlyRootFileSystem');
  });

  test('are all applied, with the configuration as a file', () => {
    const kustomization = yamlOf('kubernetes/kustomization.yaml');
    expect(kustomization.resources.toSorted()).toEqual(MANIFESTS.toSorted());
    expect(kustomization.configMapGenerator).toEqual([{ name: 'tollbridge-config', files: ['tollbridge.yaml'] }]);
    expect(pod.volumes).toContainEqual({ name: 'config', configMap: { name: 'tollbridge-config' } });
    expect(container.volumeMounts).toContainEqual({ name: 'config', mountPath: '/etc/tollbridge', readOnly: true });
  });

  test('keep the gateway in bounds: what the namespace demands, and nothing writable but its data', () => {
    expect(yamlOf('kubernetes/namespace.yaml').metadata.labels).toEqual({
      'pod-security.kubernetes.io/enforce': 'restricted',
    });
    expect(pod).toMatchObject({
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, runAsUser: 10001, seccompProfile: { type: 'RuntimeDefault' } },
    });
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    expect(container.resources.limits.memory).toBe('1Gi');
  });

  test('a log on a volume has one gateway at a time', () => {
    expect(deployment.spec).toMatchObject({ replicas: 1, strategy: { type: 'Recreate' } });
    expect(yamlOf('kubernetes/data.yaml').spec.accessModes).toEqual(['ReadWriteOncePod']);
  });

  test('find each other: labels, ports, claims, secrets', () => {
    const labels = { app: 'tollbridge' };
    expect(deployment.spec.selector.matchLabels).toEqual(labels);
    expect(deployment.spec.template.metadata.labels).toEqual(labels);
    expect(yamlOf('kubernetes/service.yaml').spec.selector).toEqual(labels);
    expect(yamlOf('kubernetes/disruption.yaml').spec.selector.matchLabels).toEqual(labels);
    expect(yamlOf('kubernetes/network.yaml').spec.podSelector.matchLabels).toEqual(labels);
    expect(container.ports).toEqual([{ name: 'http', containerPort: yamlOf('tollbridge.yaml').listen.port }]);
    expect(yamlOf('kubernetes/service.yaml').spec.ports[0].targetPort).toBe('http');
    expect(yamlOf('kubernetes/network.yaml').spec.ingress[0].ports).toEqual([{ port: 'http', protocol: 'TCP' }]);
    expect(pod.volumes[0].persistentVolumeClaim.claimName).toBe(yamlOf('kubernetes/data.yaml').metadata.name);
    for (const { name, value, valueFrom } of container.env) {
      expect(name).toMatch(/^SECRET_/);
      expect(value).toBeUndefined();
      expect(valueFrom.secretKeyRef.name).toBe('tollbridge-secrets');
    }
  });
});

describe('the image', () => {
  const stages = stagesOf(textOf('Dockerfile'));
  const last = stages.at(-1);

  test('is built of packages of npm and one plain base image, and nothing that is fetched by hand', () => {
    expect(stages.map((stage) => said(stage, 'FROM')[0]?.split(' ')[0])).toEqual(Array(3).fill('node:20-slim'));
    expect(stages.flatMap((stage) => said(stage, 'ADD'))).toEqual([]);
    expect(textOf('Dockerfile')).not.toMatch(/curl|wget|https?:|apt/);
    expect(said(stages[0], 'RUN')).toEqual(['npm ci', 'npm run build', 'npm pack']);
  });

  test('runs as the user of the other files, with their paths and port', () => {
    const { gateway } = yamlOf('compose/compose.yaml').services;
    expect(said(last, 'USER')).toEqual([gateway.user]);
    expect(said(last, 'EXPOSE')).toEqual(gateway.expose);
    expect(said(last, 'VOLUME')).toEqual(['/var/lib/tollbridge']);
    expect(said(last, 'ENV')[0]).toContain('TOLLBRIDGE_CONFIG=/etc/tollbridge/tollbridge.yaml');
    expect(said(last, 'ENTRYPOINT')).toEqual(['["node", "/opt/tollbridge/dist/src/main.js"]']);
  });

  test('takes no local data or secrets along', () => {
    const left = textOf('Dockerfile.dockerignore').split('\n');
    for (const name of ['.git', '**/node_modules', 'dist', '**/.tollbridge', '**/.env*']) expect(left).toContain(name);
  });
});

describe('the unit', () => {
  const service = sectionsOf(textOf('systemd/tollbridge.service')).get('Service') ?? new Map();
  const one = (key: string) => service.get(key)?.at(-1);

  test('starts what the image starts, with the same variables', () => {
    expect(one('ExecStart')).toBe('/usr/bin/node /opt/tollbridge/dist/src/main.js serve');
    const variables = said(stagesOf(textOf('Dockerfile')).at(-1), 'ENV')[0]?.split(' ');
    expect(service.get('Environment')).toEqual(variables);
    expect(`/var/lib/${one('StateDirectory')}`).toBe(one('WorkingDirectory'));
  });

  test('is sandboxed; what Node needs is left', () => {
    for (const [key, value] of [
      ['DynamicUser', 'yes'],
      ['ProtectSystem', 'strict'],
      ['ProtectHome', 'yes'],
      ['PrivateTmp', 'yes'],
      ['PrivateDevices', 'yes'],
      ['NoNewPrivileges', 'yes'],
      ['CapabilityBoundingSet', ''],
      ['RestrictNamespaces', 'yes'],
      ['SystemCallFilter', '~@privileged'],
    ] as const)
      expect(one(key), key).toBe(value);
    expect(service.has('MemoryDenyWriteExecute')).toBe(false);
  });

  test.runIf(existsSync('/usr/bin/systemd-analyze'))(
    'is one that systemd takes, and calls well protected',
    async () => {
      const dir = await mkdtemp(join(tmpdir(), 'tollbridge-unit-'));
      onTestFinished(() => rm(dir, { recursive: true, force: true }));
      const file = join(dir, 'tollbridge.service');
      // The program is not installed on this machine; whether it starts is tried with the image.
      const text = textOf('systemd/tollbridge.service').replace('/usr/bin/node', process.execPath);
      await writeFile(file, text);
      const { stdout, stderr } = await run('systemd-analyze', ['verify', '--man=no', file]);
      expect(`${stdout}${stderr}`).toBe('');
      const { stdout: report } = await run('systemd-analyze', ['security', '--offline=true', '--threshold=20', file]);
      expect(report).toMatch(/Overall exposure level for tollbridge.service: 1\.\d OK/);
    },
  );
});

test('the folder of the manifests is where the page says', async () => {
  const page = await readFile(join(PROJECT, 'docs/deploy.md'), 'utf8');
  for (const file of [
    'Dockerfile',
    'compose/compose.yaml',
    'compose/nginx.conf',
    'kubernetes',
    'systemd/tollbridge.service',
    'tollbridge.yaml',
  ])
    expect(page, file).toContain(`../examples/deploy/${file}`);
  for (const [, path = ''] of page.matchAll(/\]\((\.\.\/[^)#]+)\)/g))
    expect(existsSync(join(dirname(join(PROJECT, 'docs/deploy.md')), path)), path).toBe(true);
});
