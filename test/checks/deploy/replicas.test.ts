/** Several gateways on PostgreSQL, as docs/deploy.md runs them: schemas, bounds, and what makes a replica: nothing that stays lies in it. */
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { adapters } from '../../../adapters/index.ts';
import { loadPolicies } from '../../../src/policy/rules/load.ts';
import { readConfig } from '../../../src/runtime/config/config.ts';
import { mountsOf } from '../../../src/runtime/mounts/mounts.ts';
import { isDatabase } from '../../../src/store/index.ts';
import { PROJECT } from '../../support/process/project.ts';
import { DEPLOY, textOf, yamlOf } from './files.ts';
import { composeSchema, mistakesIn } from './schemas.ts';

const configuration = yamlOf('replicas/tollbridge.yaml');
const NOT_MANIFESTS = ['kustomization.yaml', 'tollbridge.yaml'];
const MANIFESTS = (await readdir(join(DEPLOY, 'replicas/kubernetes'))).filter((name) => !NOT_MANIFESTS.includes(name));
const body = (text: string) => text.slice(text.indexOf('\n'));

/** What both give a gateway besides its secrets. */
const variables = { DATABASE: 'db.example:5432/tollbridge?sslmode=verify-full', REPLICA_HOST: '10.0.0.7' };
const SECRETS = ['SECRET_STORE_PASSWORD', 'SECRET_KEYS', 'SECRET_WRITER_TOKEN'];

describe('the configuration', () => {
  test('names one database, shares keys in it, and tells the others where a gateway is', async () => {
    const env = { ...variables, SECRET_KEYS: 'k'.repeat(32), SECRET_STORE_PASSWORD: 'a password' };
    const config = await readConfig({ file: join(DEPLOY, 'replicas/tollbridge.yaml'), env, cwd: PROJECT });
    if (!isDatabase(config.store)) throw new Error('it is no database');
    expect(config.store.url).toBe(`postgres://tollbridge@${variables.DATABASE}`);
    expect(await (config.store.password as () => Promise<string>)()).toBe('a password');
    expect(await config.store.keys?.()).toBe('k'.repeat(32));
    expect(config.sharedFiles).toBeDefined();
    expect(config.vaults.map(({ name, provider }) => `${name} ${provider}`)).toEqual(['main env', 'shared store']);
    expect(config.replicas.tcp).toEqual({ host: '0.0.0.0', port: 4320, address: '10.0.0.7:4320' });
    expect(mountsOf(config, adapters).agents.length).toBe(1);
    await expect(config.policy.load().then(loadPolicies)).resolves.toBeDefined();
  });

  test('of the manifests is the same: kustomize reads no file outside its folder', () => {
    expect(body(textOf('replicas/kubernetes/tollbridge.yaml'))).toBe(body(textOf('replicas/tollbridge.yaml')));
  });
});

describe('compose.yaml', () => {
  const compose = yamlOf('replicas/compose/compose.yaml');
  const { database, gateway, proxy } = compose.services;
  const at = (path: string) => resolve(DEPLOY, 'replicas/compose', path);

  test('fits the Compose specification', async () => {
    const valid = await composeSchema();
    const { name: _, ...rest } = compose; // newer than the published schema
    expect(valid(rest), JSON.stringify(valid.errors)).toBe(true);
    expect(valid({ ...rest, services: { gateway: { ...gateway, deploy: { replica: 3 } } } })).toBe(false);
  });

  test('starts gateways once the database answers, in the bounds of a single one, with nothing that stays', () => {
    expect(gateway.deploy.replicas).toBeGreaterThan(1);
    expect(gateway.depends_on).toEqual({ database: { condition: 'service_healthy' } });
    const single = yamlOf('compose/compose.yaml').services.gateway;
    for (const bound of ['read_only', 'user', 'cap_drop', 'security_opt', 'init', 'pids_limit', 'mem_limit'])
      expect(gateway[bound], bound).toEqual(single[bound]);
    expect(gateway.volumes).toEqual(['../tollbridge.yaml:/etc/tollbridge/tollbridge.yaml:ro']);
    expect(gateway.tmpfs[1]).toContain('/var/lib/tollbridge:uid=10001');
    expect(Object.keys(compose.volumes)).toEqual(['database']);
    expect(database.volumes).toEqual(['database:/var/lib/postgresql/data']);
    expect(database.ports).toBeUndefined();
    expect(gateway.ports).toBeUndefined();
  });

  test('gives each gateway the address under which the others reach it, and secrets from outside only', () => {
    // `$$` is a dollar for the shell of the container.
    expect(gateway.entrypoint).toEqual([
      'sh',
      '-c',
      'REPLICA_HOST="$$HOSTNAME" exec node /opt/tollbridge/dist/src/main.js "$$@"',
      'tollbridge',
    ]);
    expect(gateway.expose).toEqual(['4319', '4320']);
    expect(gateway.environment.DATABASE).toBe(`database:5432/${database.environment.POSTGRES_DB}?sslmode=disable`);
    expect(configuration.store.url).toContain(`//${database.environment.POSTGRES_USER}@`);
    const secret = Object.entries(gateway.environment).filter(([name]) => name !== 'DATABASE');
    expect(secret.map(([name]) => name)).toEqual(SECRETS);
    for (const [, value] of [...secret, ['', database.environment.POSTGRES_PASSWORD]])
      expect(value).toMatch(/^\$\{[A-Z_]+:\?/);
    expect(gateway.environment.SECRET_STORE_PASSWORD).toBe(database.environment.POSTGRES_PASSWORD);
  });

  test('has one proxy before all of them, which is told whom it passes on to', () => {
    for (const path of ['../tollbridge.yaml', '../../compose/nginx.conf', gateway.build.context])
      expect(existsSync(at(path)), path).toBe(true);
    expect(existsSync(join(at(gateway.build.context), gateway.build.dockerfile))).toBe(true);
    expect(proxy.volumes[0]).toBe('../../compose/nginx.conf:/etc/nginx/nginx.conf:ro');
    // The name is looked up again and again, and stands for all gateways in turn.
    expect(textOf('compose/nginx.conf')).toContain('set $gateway gateway:4319;');
  });
});

describe('the manifests', () => {
  const file = (name: string) => yamlOf(`replicas/kubernetes/${name}`);
  const deployment = file('deployment.yaml');
  const pod = deployment.spec.template.spec;
  const [container] = pod.containers;

  test('are resources of Kubernetes, member by member', { timeout: 120_000 }, async () => {
    const manifests = Object.fromEntries(MANIFESTS.map((name) => [name, textOf(`replicas/kubernetes/${name}`)]));
    expect(await mistakesIn(manifests)).toEqual([]);
  });

  test('are all applied, with the configuration as a file', () => {
    const kustomization = file('kustomization.yaml');
    expect(kustomization.resources.toSorted()).toEqual(MANIFESTS.toSorted());
    expect(kustomization.configMapGenerator).toEqual([{ name: 'tollbridge-config', files: ['tollbridge.yaml'] }]);
    expect(pod.volumes).toContainEqual({ name: 'config', configMap: { name: 'tollbridge-config' } });
  });

  test('run several gateways, of which one at a time is replaced or drained', () => {
    const { replicas, strategy } = deployment.spec;
    expect(replicas).toBeGreaterThan(1);
    expect(strategy.rollingUpdate).toEqual({ maxUnavailable: 0, maxSurge: 1 });
    expect(file('disruption.yaml').spec.minAvailable).toBe(replicas - 1);
    expect(pod.topologySpreadConstraints[0].topologyKey).toBe('kubernetes.io/hostname');
    // It is not sent requests any more before it stops taking them.
    const { readinessProbe, livenessProbe } = container;
    expect(readinessProbe.httpGet.path).toBe('/readyz');
    expect(livenessProbe.httpGet.path).toBe('/livez');
    const drain = Number.parseInt(configuration.listen.drain, 10);
    expect(readinessProbe.periodSeconds * readinessProbe.failureThreshold).toBeLessThan(drain);
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(drain + 20);
  });

  test('keep nothing in a gateway, and keep it in the bounds of a single one', () => {
    const single = yamlOf('kubernetes/deployment.yaml').spec.template.spec;
    expect(container.securityContext).toEqual(single.containers[0].securityContext);
    const { fsGroupChangePolicy: _, ...security } = single.securityContext;
    expect(pod.securityContext).toEqual(security);
    for (const { emptyDir, configMap } of pod.volumes) expect(emptyDir ?? configMap).toBeDefined();
    expect(container.volumeMounts.find(({ name }: { name: string }) => name === 'data').mountPath).toBe(
      '/var/lib/tollbridge',
    );
    for (const same of ['namespace.yaml', 'service.yaml'])
      expect(textOf(`replicas/kubernetes/${same}`)).toBe(textOf(`kubernetes/${same}`));
  });

  test('find each other: labels, ports, the hand-over for gateways only, secrets', () => {
    const labels = { app: 'tollbridge' };
    expect(deployment.spec.template.metadata.labels).toEqual(labels);
    expect(file('disruption.yaml').spec.selector.matchLabels).toEqual(labels);
    expect(container.ports).toEqual([
      { name: 'http', containerPort: configuration.listen.port },
      { name: 'replicas', containerPort: Number(configuration.replicas.listen.split(':')[1]) },
    ]);
    const [fromIngress, fromGateways] = file('network.yaml').spec.ingress;
    expect(fromIngress.ports).toEqual([{ port: 'http', protocol: 'TCP' }]);
    expect(fromGateways).toEqual({
      from: [{ podSelector: { matchLabels: labels } }],
      ports: [{ port: 'replicas', protocol: 'TCP' }],
    });
    const [address, host, ...secrets] = container.env;
    expect(address).toEqual({ name: 'DATABASE', value: variables.DATABASE });
    expect(host.valueFrom.fieldRef.fieldPath).toBe('status.podIP');
    expect(secrets.map(({ name }: { name: string }) => name)).toEqual(SECRETS);
    for (const { valueFrom } of secrets) expect(valueFrom.secretKeyRef.name).toBe('tollbridge-secrets');
  });
});
