/** What a person trusts in a working directory can only tighten, and a change of it counts for nothing until it was seen. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { aClone, type Clone } from '../support/process/cloned-repository.ts';

const BLOCK_MAIL = 'rules:\n  - { id: no-mail, when: { tool: send_mail }, then: block, say: not from here }\n';

/** What the rules in force say about some acts, by the command that asks them. */
async function decisions(clone: Clone, expected: Readonly<Record<string, string>>): Promise<void> {
  const acts: Record<string, string> = {
    mail: '{ tool: send_mail, effect: send }',
    read: '{ tool: read_file, effect: read }',
    write: '{ tool: write_file, effect: write }',
    remove: '{ tool: remove_file, effect: delete }',
  };
  const cases = Object.entries(expected).map(
    ([name, expect]) => `- { name: ${name}, action: ${acts[name]}, expect: ${expect} }\n`,
  );
  await writeFile(join(clone.home, 'cases.yaml'), cases.join(''));
  const { code, out, err } = await clone.run(['policy', 'test', join(clone.home, 'cases.yaml')]);
  expect({ code, said: code === 0 ? '' : out + err }).toEqual({ code: 0, said: '' });
}

describe('a file that may be trusted', () => {
  test('it is shown whole, pinned with its hash in a file of the person alone, and its rules hold', async () => {
    const clone = await aClone();
    await clone.put('tollbridge.yaml', `${BLOCK_MAIL}policies: [more/extra.cedar]\n`);
    await clone.put(
      'more/extra.cedar',
      '@id("no-removal") forbid(principal, action, resource) when { context.effect == "delete" };\n',
    );
    await decisions(clone, { mail: 'ask', remove: 'ask', read: 'allow' });
    const { code, out } = await clone.run(['trust']);
    expect(code).toBe(0);
    expect(out).toContain('2 |   - { id: no-mail, when: { tool: send_mail }, then: block, say: not from here }\n');
    expect(out).toContain('1 | @id("no-removal") forbid(');
    expect((await stat(clone.trustFile)).mode & 0o777).toBe(0o600);
    const { trusted } = JSON.parse(await readFile(clone.trustFile, 'utf8'));
    expect(trusted[0].files).toMatchObject([
      { path: join(clone.repo, 'tollbridge.yaml'), sha256: expect.stringMatching(/^sha256:[0-9a-f]{64}$/) },
      { path: join(clone.repo, 'more/extra.cedar') },
    ]);
    await decisions(clone, { mail: 'block', remove: 'block', read: 'allow', write: 'ask' });
    const checked = await clone.run(['policy', 'check']);
    expect(checked.err).toBe('');
    expect(checked.out).toContain(`  ${join(clone.repo, 'tollbridge.yaml')}: 1 rule\n`);
    expect((await clone.run(['trust', '--list'])).out).toMatch(/^trusted +\S+\/repo\/tollbridge\.yaml\n/);
    expect((await clone.run(['doctor', '--port', '0'])).out).toMatch(/ok +project +\S+ is trusted \(2 files pinned\)/);
  });

  test('the person’s own allow does not outweigh it, and its own words do not outweigh the person’s', async () => {
    const clone = await aClone();
    await clone.putOwn(
      'rules:\n  - { id: no-mail, when: { tool: send_mail }, then: allow }\n  - { id: mine, when: { tool: write_file }, then: block }\n',
    );
    // The same id as a rule of the person's: both count, neither replaces the other.
    await clone.put('tollbridge.yaml', `${BLOCK_MAIL}  - { id: mine, when: { tool: write_file }, then: ask }\n`);
    expect((await clone.run(['trust'])).code).toBe(0);
    await decisions(clone, { mail: 'block', write: 'block', read: 'allow' });
    const { out } = await clone.run(['policy', 'check']);
    expect(out).toMatch(/^ok: 4 rules/);
  });

  test('it holds beside a configuration that was named as well', async () => {
    const clone = await aClone();
    await writeFile(join(clone.home, 'other.yaml'), 'rules: [{ id: all, then: allow }]\n');
    await clone.put('tollbridge.yaml', BLOCK_MAIL);
    await clone.run(['trust']);
    const { out } = await clone.run(['--config', join(clone.home, 'other.yaml'), 'policy', 'show']);
    expect(out).toContain('no-mail');
  });

  test('the built-in rules stay in force beside it', async () => {
    const clone = await aClone();
    await clone.put('tollbridge.yaml', 'rules: []\n');
    await clone.run(['trust']);
    await decisions(clone, { mail: 'ask', read: 'allow' });
  });

  test('what cannot be seen is shown by its number', async () => {
    const clone = await aClone();
    await clone.put('tollbridge.yaml', `${BLOCK_MAIL}# a\u202Eb\u200Bc\u{E0041}d\u001B[31me\u00A0f\u2028g\n`);
    const { out } = await clone.run(['trust']);
    expect(out).toContain('# a\\u{202e}b\\u{200b}c\\u{e0041}d\\u{1b}[31me\\u{a0}f\\u{2028}g\n');
  });
});

describe('a file that changes', () => {
  async function trusted(): Promise<Clone> {
    const clone = await aClone();
    await clone.put('tollbridge.yaml', BLOCK_MAIL);
    expect((await clone.run(['trust'])).code).toBe(0);
    return clone;
  }

  test.each([
    ['rewritten to allow', 'rules: [{ id: all, then: allow }]\n'],
    ['emptied', ''],
    ['with another rule', `${BLOCK_MAIL}  - { id: no-reads, when: { effect: read }, then: block }\n`],
    ['with a command', `${BLOCK_MAIL}agents: { x: { acp: { command: [sh] } } }\n`],
    ['by one blank', `${BLOCK_MAIL} \n`],
  ])('%s: the change counts for nothing, what was trusted holds, and the person is notified', async (_, text) => {
    const clone = await trusted();
    await clone.put('tollbridge.yaml', text);
    await decisions(clone, { mail: 'block', read: 'allow', write: 'ask' });
    const { err } = await clone.run(['policy', 'check']);
    expect(err).toMatch(
      /\/repo\/tollbridge\.yaml changed since you trusted it and was not read; the rules you trusted stay/,
    );
    expect((await clone.run(['trust', '--list'])).out).toMatch(/^changed /);
  });

  test('deleted, or replaced by a link to an allowing file: what was trusted holds', async () => {
    const clone = await trusted();
    await rename(join(clone.repo, 'tollbridge.yaml'), join(clone.repo, 'old.yaml'));
    await decisions(clone, { mail: 'block' });
    expect((await clone.run(['policy', 'check'])).err).toMatch(/is gone; the rules you trusted stay in force until: /);
    await clone.put('all.yaml', 'rules: [{ id: all, then: allow }]\n');
    await symlink('all.yaml', join(clone.repo, 'tollbridge.yaml'));
    await decisions(clone, { mail: 'block', write: 'ask' });
  });

  test('a file it names changes: likewise', async () => {
    const clone = await aClone();
    await clone.put('tollbridge.yaml', 'policies: [r.yaml]\n');
    await clone.put('r.yaml', '- { id: no-mail, when: { tool: send_mail }, then: block }\n');
    await clone.run(['trust']);
    await clone.put('r.yaml', '- { id: all, then: allow }\n');
    await decisions(clone, { mail: 'block', write: 'ask' });
    expect((await clone.run(['policy', 'check'])).err).toContain('changed since you trusted it');
  });

  test('trusted again, the new rules hold; removed, none do', async () => {
    const clone = await trusted();
    await clone.put('tollbridge.yaml', 'rules:\n  - { id: no-reads, when: { effect: read }, then: block }\n');
    expect((await clone.run(['trust'])).code).toBe(0);
    await decisions(clone, { mail: 'ask', read: 'block' });
    expect((await clone.run(['trust', '--remove'])).code).toBe(0);
    await decisions(clone, { mail: 'ask', read: 'allow' });
    expect((await clone.run(['policy', 'check'])).err).toContain('is not trusted and was not read');
    expect((await clone.run(['trust', '--remove'])).code).toBe(3);
  });

  test('a gateway that runs takes what is trusted at once, and takes nothing from a changed file', async () => {
    const clone = await trusted();
    await clone.putOwn('listen: { port: 0 }\n');
    const gateway = clone.start(['serve']);
    await gateway.says(/approvals {2}\(.*\)\n/);
    expect(gateway.said().out).toContain(`, trusted rules in ${join(clone.repo, 'tollbridge.yaml')}\n`);
    const loaded = async () => {
      const { out } = await clone.run(['log', '--json']);
      const lines = out.split('\n').filter((line) => line.includes('vendor.tollbridge.policy_loaded'));
      return lines.map((line) => JSON.parse(line).payload.rules as number);
    };
    expect(await loaded()).toEqual([3]);
    await clone.put('tollbridge.yaml', 'rules: [{ id: all, then: allow }]\n');
    await clone.put('tollbridge.yaml', `${BLOCK_MAIL}  - { id: no-reads, when: { effect: read }, then: block }\n`);
    await clone.run(['trust']);
    await expect.poll(loaded, { timeout: 20_000, interval: 300 }).toEqual([3, 4]);
    gateway.child.kill('SIGINT');
    await gateway.ended;
  });
});

describe('a file that may not be trusted', () => {
  test.each([
    ['an allowing rule', 'rules: [{ id: x, then: allow }]', /x: it allows/],
    ['a rule that rewrites', 'rules: [{ id: x, then: modify, set: { a: 1 } }]', /x: it rewrites arguments/],
    ['a rule that says who answers', 'rules: [{ id: x, then: ask, to: [agent] }]', /x: it says who may answer/],
    ['a rule that says how long', 'rules: [{ id: x, then: ask, expires: 365d }]', /x: it says how long/],
    ['a listener', 'listen: { host: 0.0.0.0 }', /it has listen;/],
    ['a store', 'store: { path: x.db }', /it has store;/],
    ['an issuer of tokens', 'auth: { oauth: {} }', /it has auth;/],
    ['a door', 'doors: { mcp: {} }', /it has doors;/],
    ['a persona', 'personas: { free: { autonomy: act_auto } }', /it has personas;/],
    ['a quota', 'quotas: { all: { limits: { usd: 1000 } } }', /it has quotas;/],
    ['autonomy', 'autonomy: act_auto', /it has autonomy;/],
    ['retention', 'retention: { events: 1s }', /it has retention;/],
    ['the demo', 'demo: true', /it has demo;/],
    ['a section twice', 'rules: []\nrules: [{ id: x, then: allow }]', /cannot be trusted/],
    ['a merge key', 'x: &x { rules: [] }\n<<: *x', /it has x, <</],
    ['a merge key in a rule', 'rules: [{ id: a, then: block }, { <<: { then: allow }, id: b, then: block }]', /<</],
    ['a bomb of aliases', bomb(), /cannot be trusted/],
    ['two documents', 'rules: []\n---\nrules: [{ id: x, then: allow }]', /cannot be trusted/],
    ['a file beside it', 'policies: ["../outside.cedar"]', /not in its directory/],
    ['a file of the system', 'policies: ["/etc/passwd"]', /not in its directory/],
    ['a file of the person', 'policies: ["~/.ssh/id_ed25519"]', /not in its directory/],
    ['a link out of it', 'policies: [link.cedar]', /not in its directory/],
    ['a variable', `policies: ["\${HOME:-x}.cedar"]`, /nothing is filled in/],
    ['a file that is not there', 'policies: [none.cedar]', /there is no such file/],
    ['Cedar that permits', 'policies: [permit.cedar]', /everything: it allows/],
    ['Cedar that permits and asks', 'policies: [asks.cedar]', /asks: it is written as a permit/],
    ['a tag', 'rules: !!js/function "x"', /cannot be trusted|rules/],
  ])('%s', async (_, text, why) => {
    const clone = await aClone();
    await clone.put('tollbridge.yaml', `${text}\n`);
    await clone.put('permit.cedar', '@id("everything") permit(principal, action, resource);\n');
    await clone.put('asks.cedar', '@id("asks") @verdict("ask") permit(principal, action, resource);\n');
    await writeFile(join(clone.home, 'secret.cedar'), 'a secret of the person');
    await symlink(join(clone.home, 'secret.cedar'), join(clone.repo, 'link.cedar'));
    const { code, out, err } = await clone.run(['trust']);
    expect(code).toBe(5);
    expect(err).toMatch(why);
    expect(out + err).not.toContain('a secret of the person');
    expect(existsSync(clone.trustFile)).toBe(false);
  });

  test.each([
    ['a directory', (path: string) => mkdir(path), /it is a directory/],
    [
      'a pipe',
      async (path: string) => void spawnSync('sh', ['-c', 'mkfifo "$1"', 'sh', path]),
      /it is not a plain file/,
    ],
    ['a link', (path: string) => symlink('/etc/hostname', path), /it is a symbolic link/],
    ['a huge file', (path: string) => writeFile(path, `# ${'x'.repeat(300_000)}\n`), /it has more than 65536 bytes/],
    ['a link to an endless file', (path: string) => symlink('/dev/zero', path), /it is a symbolic link/],
  ])('%s of that name: nobody waits for it, and it is not read', async (_, make, why) => {
    const clone = await aClone();
    await make(join(clone.repo, 'tollbridge.yaml'));
    const checked = await clone.run(['policy', 'check']);
    expect([checked.code, checked.err]).toEqual([0, expect.stringMatching(why)]);
    const { code, err } = await clone.run(['trust']);
    expect([code, err]).toEqual([5, expect.stringMatching(why)]);
  });

  test('text that is not valid UTF-8', async () => {
    const clone = await aClone();
    await writeFile(join(clone.repo, 'tollbridge.yaml'), Buffer.from([0x72, 0xff, 0xfe, 0x0a]));
    expect((await clone.run(['trust'])).err).toContain('it is not valid UTF-8');
  });

  test('a program that tollbridge started cannot trust, and cannot lift what is trusted', async () => {
    const clone = await aClone();
    await clone.put('tollbridge.yaml', BLOCK_MAIL);
    const below = { TOLLBRIDGE_CHILD: 'abc' };
    expect((await clone.run(['trust'], below)).code).toBe(5);
    await clone.run(['trust']);
    expect((await clone.run(['trust', '--remove'], below)).code).toBe(5);
    await decisions(clone, { mail: 'block' });
  });
});

describe('the record of what is trusted', () => {
  async function recorded(): Promise<Clone> {
    const clone = await aClone();
    await clone.put('tollbridge.yaml', BLOCK_MAIL);
    await clone.run(['trust']);
    return clone;
  }

  test('changed by hand, nothing starts: which rules were pinned is no longer known', async () => {
    const clone = await recorded();
    const text = await readFile(clone.trustFile, 'utf8');
    for (const bad of ['', '{}', text.replace('block', 'allow'), text.slice(0, 100)]) {
      await writeFile(clone.trustFile, bad);
      const { code, err } = await clone.run(['policy', 'check']);
      expect([code, err]).toEqual([2, expect.stringMatching(/trust\.json says what you trust and cannot be used: /)]);
    }
    await rm(clone.trustFile);
    expect((await clone.run(['policy', 'check'])).code).toBe(0);
  });

  test('a record or a configuration that anyone can write is not read', async () => {
    const clone = await recorded();
    await chmod(clone.trustFile, 0o666);
    expect(await clone.run(['policy', 'check'])).toMatchObject({ code: 5, err: expect.stringContaining('by anyone') });
    await chmod(clone.trustFile, 0o600);
    await clone.putOwn('rules: []\n');
    await chmod(clone.own, 0o666);
    expect(await clone.run(['policy', 'check'])).toMatchObject({ code: 5, err: expect.stringContaining('by anyone') });
  });
});

function bomb(): string {
  const levels = ['a: &a [x,x,x,x,x,x,x,x,x,x]'];
  for (const [at, name] of [...'bcdefgh'].entries()) {
    const before = 'abcdefg'[at];
    levels.push(`${name}: &${name} [${Array(10).fill(`*${before}`).join(',')}]`);
  }
  return `rules: [{ id: x, then: block, when: { arguments: { ${levels.join(', ')} } } }]`;
}
