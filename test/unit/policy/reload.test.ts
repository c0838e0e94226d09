import { mkdir, mkdtemp, readFile, rename, rm, symlink, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { anAction } from '../../../fixtures/policies/actions.ts';
import type { Sources } from '../../../src/policy/rules/load.ts';
import { createReloadablePolicy, type PolicyChange, type ReloadablePolicy } from '../../../src/policy/rules/reload.ts';

const ALLOW = '- { id: open, then: allow }';
const BLOCK = '- { id: shut, then: block }';
const BROKEN = '- { id: bad, then: maybe }';
const write = anAction({ effect: 'write' });

describe('reloading on request', () => {
  const setUp = (first: string) => {
    let text = first;
    const changes: PolicyChange[] = [];
    const policy = createReloadablePolicy({
      load: async (): Promise<Sources> => ({ rules: text, files: [] }),
      onChange: (change) => changes.push(change),
    });
    return {
      policy,
      changes,
      put: (next: string) => {
        text = next;
      },
    };
  };

  test('before the first policy the answer is no', () => {
    const { policy } = setUp(ALLOW);
    expect(policy.inForce().judge(write)).toMatchObject({
      verdict: 'block',
      code: 'policy_error',
      reason: 'no policy is in force yet, which counts as no',
    });
  });
  test('a new policy comes into force and says its version on every decision', async () => {
    const { policy, changes, put } = setUp(ALLOW);
    const first = await policy.reload();
    expect(first).toEqual({ outcome: 'loaded', version: expect.stringMatching(/^sha256:/), rules: 1, errors: [] });
    expect(policy.inForce().judge(write)).toMatchObject({
      verdict: 'allow',
      engine: 'cedar',
      policy_version: first.version,
    });
    put(BLOCK);
    const second = await policy.reload();
    expect(second.version).not.toBe(first.version);
    expect(await policy.inForce().decide(write, new AbortController().signal)).toMatchObject({
      verdict: 'block',
      policy_version: second.version,
    });
    expect(policy.version).toBe(second.version);
    expect(changes).toEqual([first, second]);
  });
  test('a bad policy leaves the old one in force and is reported', async () => {
    const { policy, changes, put } = setUp(ALLOW);
    const { version } = await policy.reload();
    put(BROKEN);
    const refused = await policy.reload();
    expect(refused).toMatchObject({
      outcome: 'refused',
      version,
      rules: 1,
      refused: expect.stringMatching(/^sha256:/),
      errors: [{ file: 'rules.yaml', rule: 'bad', line: 1, column: 20 }],
    });
    expect(policy.inForce().judge(write)).toMatchObject({ verdict: 'allow', policy_version: version });
    put(ALLOW);
    expect(await policy.reload()).toMatchObject({ outcome: 'loaded', version, errors: [] });
    expect(changes.map(({ outcome }) => outcome)).toEqual(['loaded', 'refused', 'loaded']);
  });
  test('a bad first policy leaves the answer at no', async () => {
    const { policy, changes } = setUp(BROKEN);
    expect(await policy.reload()).toMatchObject({ outcome: 'refused', version: undefined });
    expect(policy.inForce().judge(write).verdict).toBe('block');
    expect(changes).toHaveLength(1);
  });
  test('an empty policy asks', async () => {
    const { policy } = setUp('');
    await policy.reload();
    expect(policy.inForce().judge(write)).toMatchObject({ verdict: 'escalate', code: 'no_rule' });
  });
  test('sources that cannot be read at all are a refusal', async () => {
    const changes: PolicyChange[] = [];
    const policy = createReloadablePolicy({
      load: () => Promise.reject(new Error('no such file')),
      onChange: (change) => changes.push(change),
    });
    expect(await policy.reload()).toEqual({
      outcome: 'refused',
      version: undefined,
      rules: 0,
      errors: [{ file: 'policy', message: 'no such file' }],
    });
    await policy.reload();
    expect(changes).toHaveLength(1);
  });
  test('nothing new is not news', async () => {
    const { policy, changes } = setUp(ALLOW);
    await policy.reload();
    await policy.reload();
    expect(changes).toHaveLength(1);
  });
  test('what is closed tells nothing more', async () => {
    const { policy, changes, put } = setUp(ALLOW);
    await policy.reload();
    put(BLOCK);
    const last = policy.reload();
    await policy.close();
    await last;
    expect(changes).toHaveLength(1);
  });
});

describe('a source that changes while it is read', () => {
  test('is read again until it holds still', async () => {
    const texts = [ALLOW, BROKEN, BLOCK, BLOCK];
    let reads = 0;
    const changes: PolicyChange[] = [];
    const policy = createReloadablePolicy({
      load: async () => ({ rules: texts[Math.min(reads++, texts.length - 1)] as string, files: [] }),
      onChange: (change) => changes.push(change),
    });
    expect((await policy.reload()).outcome).toBe('loaded');
    expect(policy.inForce().judge(write).rule_id).toBe('shut');
    expect(changes).toHaveLength(1);
  });
  test('is refused when it never does', async () => {
    let reads = 0;
    const policy = createReloadablePolicy({
      load: async () => ({ rules: `- { id: r${reads++}, then: allow }`, files: [] }),
      onChange: () => {},
    });
    expect(await policy.reload()).toMatchObject({
      outcome: 'refused',
      errors: [{ message: 'the policy keeps changing while it is being read' }],
    });
    expect(policy.inForce().judge(write).verdict).toBe('block');
  });
  test('reloads that are asked for during a load share the next one', async () => {
    let text = ALLOW;
    let release: () => void = () => {};
    let held = true;
    const policy = createReloadablePolicy({
      load: async () => {
        const read = text;
        if (held)
          await new Promise<void>((resolve) => {
            release = resolve;
          });
        held = false;
        return { rules: read, files: [] };
      },
      onChange: () => {},
    });
    const first = policy.reload();
    text = BLOCK;
    const second = policy.reload();
    const third = policy.reload();
    release();
    expect((await first).outcome).toBe('loaded');
    expect((await second).version).toBe((await third).version);
    expect(policy.inForce().judge(write).rule_id).toBe('shut');
  });
});

describe('watching files', () => {
  let dir: string;
  let policy: ReloadablePolicy;
  let changes: PolicyChange[];
  const start = async (path: string, watch: readonly string[]) => {
    changes = [];
    policy = createReloadablePolicy({
      load: async () => ({ files: [{ name: 'own.yaml', text: await readFile(path, 'utf8') }] }),
      onChange: (change) => changes.push(change),
      watch,
      debounceMs: 5,
    });
    await policy.reload();
  };
  const decides = (rule: string) =>
    vi.waitFor(() => expect(policy.inForce().judge(write).rule_id).toBe(rule), { timeout: 10_000 });
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'policy-'));
  });
  afterEach(async () => {
    await policy.close();
    await rm(dir, { recursive: true, force: true });
  });

  test('a file written in place', async () => {
    const path = join(dir, 'own.yaml');
    await writeFile(path, ALLOW);
    await start(path, [path]);
    await writeFile(path, BLOCK);
    await decides('shut');
  });
  test('a file replaced by another, again and again', async () => {
    const path = join(dir, 'own.yaml');
    await writeFile(path, ALLOW);
    await start(path, [path]);
    for (const [text, rule] of [
      [BLOCK, 'shut'],
      [ALLOW, 'open'],
      [BLOCK, 'shut'],
    ] as const) {
      await writeFile(`${path}.new`, text);
      await rename(`${path}.new`, path);
      await decides(rule);
    }
  });
  test('a bad file, then a good one', async () => {
    const path = join(dir, 'own.yaml');
    await writeFile(path, ALLOW);
    await start(path, [path]);
    await writeFile(path, BROKEN);
    await vi.waitFor(() => expect(changes.at(-1)?.outcome).toBe('refused'), { timeout: 10_000 });
    expect(policy.inForce().judge(write).rule_id).toBe('open');
    await writeFile(path, BLOCK);
    await decides('shut');
  });
  test('a file that goes away leaves the old policy in force', async () => {
    const path = join(dir, 'own.yaml');
    await writeFile(path, ALLOW);
    await start(path, [path]);
    await unlink(path);
    await vi.waitFor(() => expect(changes.at(-1)?.outcome).toBe('refused'), { timeout: 10_000 });
    expect(policy.inForce().judge(write).rule_id).toBe('open');
  });
  test('a directory', async () => {
    const path = join(dir, 'own.yaml');
    await writeFile(path, ALLOW);
    await start(path, [dir]);
    await writeFile(path, BLOCK);
    await decides('shut');
  });
  test('mounted configuration, swapped as a whole', async () => {
    await mkdir(join(dir, 'v1'));
    await mkdir(join(dir, 'v2'));
    await writeFile(join(dir, 'v1', 'own.yaml'), ALLOW);
    await writeFile(join(dir, 'v2', 'own.yaml'), BLOCK);
    await symlink('v1', join(dir, '..data'));
    await symlink(join('..data', 'own.yaml'), join(dir, 'own.yaml'));
    await start(join(dir, 'own.yaml'), [join(dir, 'own.yaml')]);
    await symlink('v2', join(dir, '..new'));
    await rename(join(dir, '..new'), join(dir, '..data'));
    await decides('shut');
  });
  test('a place that does not exist yet', async () => {
    const later = join(dir, 'later');
    const path = join(later, 'own.yaml');
    await start(path, [path]);
    expect(changes.at(-1)?.outcome).toBe('refused');
    await mkdir(later);
    await writeFile(path, BLOCK);
    await decides('shut');
  });
});
