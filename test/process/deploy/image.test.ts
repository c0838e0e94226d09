/**
 * The steps of the image in examples/deploy, taken on this machine: the packed program with the packages of the lock file, started as a
 * user that may write nowhere but to its data directory, answers the probes of the manifests.
 */
import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, chown, cp, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DEPLOY, said, stagesOf, textOf, yamlOf } from '../../checks/deploy/files.ts';
import { eventually } from '../../support/eventually.ts';
import { PROJECT } from '../../support/process/project.ts';

const run = promisify(execFile);
const [build, install, image] = stagesOf(textOf('Dockerfile'));
const UID = 10001;
/** Another user than the owner of the files needs root; without it the files lose their write permission. */
const AS = process.getuid?.() === 0 ? { uid: UID, gid: UID } : {};

let root: string;
let program: string;
let env: Record<string, string>;

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'tollbridge-image-'));
  await chmod(root, 0o755);
  program = join(root, 'tollbridge');
  for (const name of ['packed', 'tollbridge', 'data', 'etc', 'tmp']) await mkdir(join(root, name));
  // npm test has taken the first two steps of this stage.
  expect(said(build, 'RUN').at(-1)).toBe('npm pack');
  await run('npm', ['pack', '--pack-destination', join(root, 'packed')], { cwd: PROJECT, maxBuffer: 1 << 24 });
  await cp(join(PROJECT, 'package-lock.json'), join(root, 'packed/package-lock.json'));
  for (const step of said(install, 'RUN')) {
    const here = step.replaceAll('/packed/', `${join(root, 'packed')}/`);
    const npm = { npm_config_prefer_offline: 'true', npm_config_audit: 'false', npm_config_fund: 'false' };
    await run('sh', ['-c', here], { cwd: program, env: { ...process.env, ...npm }, maxBuffer: 1 << 26 });
  }
  await cp(join(DEPLOY, 'tollbridge.yaml'), join(root, 'etc/tollbridge.yaml'));
  for (const name of ['data', 'tmp']) await chown(join(root, name), AS.uid ?? -1, AS.gid ?? -1).catch(() => {});
  await run('chmod', ['-R', 'a-w,a+rX', program, join(root, 'etc')]);
  const variables = said(image, 'ENV')[0]
    ?.split(' ')
    .map((each) => each.split('=') as [string, string]);
  env = {
    ...Object.fromEntries(variables ?? []),
    PATH: process.env.PATH ?? '',
    TMPDIR: join(root, 'tmp'),
    TOLLBRIDGE_CONFIG: join(root, 'etc/tollbridge.yaml'),
    TOLLBRIDGE_DATA: join(root, 'data'),
    SECRET_WRITER_TOKEN: 'the token of the writer',
  };
}, 600_000);

afterAll(async () => {
  await run('chmod', ['-R', 'u+w', program]).catch(() => {});
  await rm(root, { recursive: true, force: true });
});

/** A program of the image, as its user. Resolves with its exit code and output. */
function started(args: readonly string[]) {
  const child = spawn(process.execPath, [...args], { ...AS, env, cwd: join(root, 'data'), stdio: 'pipe' });
  let text = '';
  let look = () => {};
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      text += chunk;
      look();
    });
  }
  const ended = new Promise<{ code: number | null; text: string }>((resolve) => {
    child.once('close', (code) => {
      resolve({ code, text });
    });
  });
  const says = (pattern: RegExp) =>
    new Promise<RegExpExecArray>((resolve, reject) => {
      look = () => {
        const found = pattern.exec(text);
        if (found) resolve(found);
      };
      look();
      ended.then(() => reject(new Error(`ended without ${pattern}: ${text}`)));
    });
  return { child, ended, says };
}

test('the bill of materials lists what is installed, all of it and nothing else', async () => {
  const bill = JSON.parse(await readFile(join(program, 'sbom.json'), 'utf8'));
  expect(bill).toMatchObject({
    bomFormat: 'CycloneDX',
    metadata: { component: { name: 'tollbridge', version: '0.1.0' } },
  });
  const listed: readonly string[] = bill.components.map(({ purl }: { purl: string }) => decodeURIComponent(purl));
  const { packages } = JSON.parse(await readFile(join(program, 'node_modules/.package-lock.json'), 'utf8'));
  const installed = Object.entries<{ name?: string; version: string }>(packages)
    .filter(([folder]) => existsSync(join(program, folder)))
    .map(([folder, { name, version }]) => `pkg:npm/${name ?? folder.split('node_modules/').at(-1)}@${version}`);
  expect(listed.toSorted()).toEqual(installed.toSorted());
  expect(listed.some((purl) => purl.startsWith('pkg:npm/@cedar-policy/cedar-wasm@'))).toBe(true);
  expect(listed.filter((purl) => /\/(vitest|typescript|playwright-core)@/.test(purl))).toEqual([]);
});

test('a user that may write to the data directory only starts it; the probes say what they mean', {
  timeout: 120_000,
}, async () => {
  const main = join(program, 'dist/src/main.js');
  const gateway = started([main, 'serve', '--port', '0', '--host', '127.0.0.1', '--json']);
  try {
    const { url } = JSON.parse((await gateway.says(/^\{"object":"gateway".*\n/m))[0]);
    const [container] = yamlOf('kubernetes/deployment.yaml').spec.template.spec.containers;
    for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
      const { path } = container[probe].httpGet;
      expect((await fetch(`${url}${path}`)).status, `${probe} ${path}`).toBe(200);
    }
    const [, script = ''] = /"node", "\/opt\/tollbridge\/(.+?)"/.exec(said(image, 'HEALTHCHECK')[0] ?? '') ?? [];
    const check = join(program, script);
    const ready = container.readinessProbe.httpGet.path;
    expect(await readFile(check, 'utf8')).toContain(`'http://127.0.0.1:4319${ready}'`);
    // It gives up after some seconds, and is asked again, as containers do it.
    await eventually(
      async () => (await started([check, `${url}${ready}`]).ended).code === 0,
      'the check finds it ready',
    );
    expect(await started([check, `${url}/no-such-path`]).ended).toEqual({ code: 1, text: '' });

    const made = await started([main, 'keys', 'create', 'ops', '--for', 'admin', '--json']).ended;
    expect(made.code, made.text).toBe(0);
    const { key } = JSON.parse(made.text);
    const metrics = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${key}` } });
    expect(metrics.status).toBe(200);
    expect(await metrics.text()).toContain('tollbridge_');
    expect((await started([main, 'vault', 'list']).ended).text).toContain('WRITER_TOKEN');
    expect((await started([main, 'verify', 'all']).ended).code).toBe(0);

    gateway.child.kill('SIGTERM');
    expect((await gateway.ended).code).toBe(0);
    expect(await started([check, `${url}${ready}`]).ended).toEqual({ code: 1, text: '' });
  } finally {
    gateway.child.kill('SIGKILL');
  }
});
