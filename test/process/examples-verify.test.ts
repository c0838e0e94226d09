/**
 * What a third party needs: the scripts in Python and their twins in plain JavaScript take what export writes, and name the first thing
 * that was changed, in the same words. The twins run everywhere, in Node and in a browser; the scripts where Python has its two
 * packages (`pip install cryptography rfc8785`; TOLLBRIDGE_PYTHON names another interpreter).
 */
import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, sep } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { exportAll } from '../../src/cli/commands/proof/export.ts';
import { followLinks } from '../../src/cli/commands/proof/verify-linked.ts';
import { systemClock } from '../../src/core/clock.ts';
import type { Receipt } from '../../src/model/receipt.ts';
import { appendLeaf, EMPTY_TREE, type Tree } from '../../src/receipt/merkle/merkle.ts';
import { createCheckpoints } from '../../src/receipt/seal/checkpoints.ts';
import { openKeyring } from '../../src/receipt/seal/keys.ts';
import { receiptHash } from '../../src/receipt/seal/receipt-hash.ts';
import { signTreeHead } from '../../src/receipt/seal/tree-head.ts';
import { openCoreRuntime } from '../../src/runtime/assemble.ts';
import { openPage } from '../support/process/browser.ts';
import '../support/process/close-browser.ts';
import { aLog, typed } from '../support/process/cli.ts';
import { PROJECT } from '../support/process/project.ts';
import { hasPython, PYTHON } from '../support/process/python.ts';

const run = promisify(execFile);
const VERIFY = join(PROJECT, 'examples/verify');
const NAMES = ['receipts.jsonl', 'events.jsonl', 'keys.json', 'tree-head.json', 'log-head.json'];

type Files = Record<string, string>;
type Found = { receipts: Map<string, Receipt>; leaves: Map<string, Uint8Array> };
type Twin = {
  check(files: Files, trusted?: string[]): Promise<Found>;
  main(ours: Found, theirs: Found): number;
};
const twins = {
  verify: (await import(join(VERIFY, 'verify.js'))) as Twin,
  more: (await import(join(VERIFY, 'verify-more.js'))) as Twin,
};
const SCRIPTS = { verify: 'verify.py', more: 'verify_more.py' } as const;
type Which = keyof typeof SCRIPTS;
const BOTH = Object.keys(SCRIPTS) as Which[];
const { verify } = twins;

let base: string;
beforeAll(async () => {
  base = await mkdtemp(join(tmpdir(), 'tb-third-'));
  for (const name of ['one', 'two']) {
    await aLog(['hello', 'read plan', name === 'one' ? 'write plan anew' : 'odd \ud800 \u2028 é 💶'], {
      at: join(base, name),
    });
    await typed(() => exportAll(join(base, `${name}-out`), { data: join(base, name) }));
  }
  // As two gateways in a row leave them: the callee names the caller's task, the caller the callee's receipt by its id and hash.
  await name();
});
afterAll(() => rm(base, { recursive: true, force: true }));

async function receiptsIn(dir: string): Promise<Receipt[]> {
  return (await readFile(join(base, dir, 'receipts.jsonl'), 'utf8'))
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}
const linkTo = ({ receipt_id, chain, issuer, identifiers }: Receipt) => ({
  receipt_id,
  receipt_hash: chain.receipt_hash,
  issuer: issuer.id,
  task_id: identifiers.task_id,
});

const EVENT = { event_id: 'evt_9999999999999999', event_hash: `sha256:${'0'.repeat(64)}` };

/** The last receipts of both, linked, with what is to be wrong about it. */
async function name({ up = {}, down = {} }: { up?: object; down?: object } = {}): Promise<void> {
  const task_id = (await receiptsIn('one-out')).at(-1)!.identifiers.task_id;
  await relink('two', [{ direction: 'caller', protocol: 'harn', task_id, ...EVENT, ...up }]);
  const callee = linkTo((await receiptsIn('two-out')).at(-1)!);
  await relink('one', [{ direction: 'callee', protocol: 'harn', ...callee, ...EVENT, ...down }]);
}

/** The last receipt with these links, sealed as its gateway would have sealed it. */
async function relink(name: string, linked_receipts: readonly object[]): Promise<void> {
  const keyring = await openKeyring({ dir: join(base, name, 'keys'), now: () => new Date().toISOString() });
  const receipts = await receiptsIn(`${name}-out`);
  const last = receipts.at(-1)! as { -readonly [K in keyof Receipt]: Receipt[K] };
  last.metadata = { ...last.metadata, linked_receipts: linked_receipts as never };
  const receipt_hash = receiptHash(last);
  last.chain = { ...last.chain, receipt_hash };
  last.signatures = [keyring.signer().sign(receipt_hash)];
  let tree: Tree = EMPTY_TREE;
  for (const { chain } of receipts) tree = appendLeaf(tree, chain.receipt_hash).tree;
  const dir = join(base, `${name}-out`);
  await writeFile(join(dir, 'receipts.jsonl'), `${receipts.map((each) => JSON.stringify(each)).join('\n')}\n`);
  await writeFile(
    join(dir, 'tree-head.json'),
    JSON.stringify(signTreeHead(tree, new Date().toISOString(), keyring.signer())),
  );
}

async function filesIn(dir: string): Promise<Files> {
  return Object.fromEntries(
    await Promise.all(NAMES.map(async (name) => [name, await readFile(join(dir, name), 'utf8')])),
  );
}

const said = (found: Promise<string>) => found.catch((thrown: Error) => `BAD ${thrown.message}`);

/** What a script says of one export or of two, and what its twin says. */
const SPEAKERS = {
  javascript: (which: Which, dirs: readonly string[], trusted: string[] = []) =>
    said(
      (async () => {
        const { check, main } = twins[which];
        const [one, two] = await Promise.all(dirs.map(async (dir) => await check(await filesIn(dir), trusted)));
        return `ok ${one!.receipts.size} receipts, ${one!.leaves.size} events, ${two ? main(one!, two) : 0} links`;
      })(),
    ),
  python: (which: Which, dirs: readonly string[], trusted: string[] = []) =>
    run(PYTHON, [join(VERIFY, SCRIPTS[which]), ...dirs, ...trusted]).then(
      ({ stdout }) => stdout.trim(),
      ({ stdout, stderr }) => `${stdout}${stderr}`.trim(),
    ),
};

async function copyOf(name: string, change: (files: Files) => void = () => {}): Promise<string> {
  const dir = await mkdtemp(join(base, 'copy-'));
  await cp(name.includes(sep) ? name : join(base, `${name}-out`), dir, { recursive: true });
  const files = await filesIn(dir);
  change(files);
  for (const [file, text] of Object.entries(files)) await writeFile(join(dir, file), text);
  return dir;
}

/** Of a log whose first task was pruned, in the middle of it. */
async function prunedExport(): Promise<string> {
  const [data, out] = [await mkdtemp(join(base, 'pruned-')), await mkdtemp(join(base, 'pruned-out-'))];
  await cp(join(base, 'one'), data, { recursive: true });
  const runtime = await openCoreRuntime({ dataDir: data });
  const { store, log, keyring } = runtime;
  await createCheckpoints({ store, log, signer: keyring.signer(), clock: systemClock }).take();
  const middle = await store.event(event(30));
  expect((await store.retain(middle!.created_at)).dropped).toBeGreaterThan(0);
  await runtime.close();
  await typed(() => exportAll(out, { data }));
  expect(JSON.parse((await filesIn(out))['log-head.json']!).pruned.size).toBeGreaterThan(0);
  return out;
}

const lines = (files: Files, name: string, change: (lines: string[]) => string[]) => {
  files[name] = `${change(files[name]!.trimEnd().split('\n')).join('\n')}\n`;
};
const swap = (files: Files, name: string, from: RegExp, to: string | ((found: string) => string)) => {
  files[name] = files[name]!.replace(from, to as string);
};
const RECEIPT = (at: number) => async () => (await receiptsIn('one-out')).at(at)!.receipt_id;
const event = (at: number) => `evt_${String(at).padStart(16, '0')}`;
const words = (text: string) => async () => text;

/** What is done to an export, what is named for it, and by which of the two: what belongs to no receipt is found by the second alone. */
const CHANGES: readonly [string, (files: Files) => void, () => Promise<string>, Which?][] = [
  [
    'a byte of a receipt',
    (files) => lines(files, 'receipts.jsonl', (all) => all.with(1, all[1]!.replace('SUCCEEDED', 'SUCCEEDEd'))),
    RECEIPT(1),
  ],
  [
    'the hash of a receipt',
    (files) =>
      lines(files, 'receipts.jsonl', (all) =>
        all.with(1, all[1]!.replace(/"receipt_hash":"sha256:./, '"receipt_hash":"sha256:x')),
      ),
    RECEIPT(1),
  ],
  [
    'a receipt without its signature',
    (files) =>
      lines(files, 'receipts.jsonl', (all) => all.with(1, JSON.stringify({ ...JSON.parse(all[1]!), signatures: [] }))),
    RECEIPT(1),
  ],
  [
    'a receipt taken out of its chain',
    (files) => lines(files, 'receipts.jsonl', (all) => all.toSpliced(1, 1)),
    RECEIPT(2),
  ],
  [
    'two receipts exchanged',
    (files) => lines(files, 'receipts.jsonl', (all) => all.toSpliced(1, 2, all[2]!, all[1]!)),
    RECEIPT(2),
  ],
  [
    'the last receipt taken out',
    (files) => lines(files, 'receipts.jsonl', (all) => all.slice(0, -1)),
    words('tree-head.json'),
  ],
  [
    'an event of a task changed',
    (files) =>
      lines(files, 'events.jsonl', (all) => all.with(20, all[20]!.replace('"created_at":"2', '"created_at":"1'))),
    RECEIPT(1),
  ],
  ['an event missing', (files) => lines(files, 'events.jsonl', (all) => all.toSpliced(20, 1)), words(event(21))],
  [
    'two events exchanged',
    (files) => lines(files, 'events.jsonl', (all) => all.toSpliced(20, 2, all[21]!, all[20]!)),
    words(event(21)),
  ],
  [
    'the number of the first event of a task',
    (files) =>
      lines(files, 'events.jsonl', (all) =>
        all.map((line) =>
          line.includes('"event":"task.submitted"') ? line.replace('"sequence":1,', '"sequence":0,') : line,
        ),
      ),
    RECEIPT(0),
  ],
  [
    'an event of no task changed',
    (files) =>
      lines(files, 'events.jsonl', (all) => all.with(0, all[0]!.replace('"created_at":"2', '"created_at":"1'))),
    words('log-head.json'),
    'more',
  ],
  ['the last event missing', (files) => lines(files, 'events.jsonl', (all) => all.slice(0, -1)), RECEIPT(-1)],
  [
    'the head of the receipts changed',
    (files) => swap(files, 'tree-head.json', /"at": ?"2/, '"at": "1'),
    words('tree-head.json'),
  ],
  [
    'the head of the log changed',
    (files) => swap(files, 'log-head.json', /"at": ?"2/, '"at": "1'),
    words('log-head.json'),
    'more',
  ],
  [
    'a key that is not its own',
    (files) => swap(files, 'keys.json', /"x": "./, (x) => (x.endsWith('_') ? '"x": "-' : '"x": "_')),
    RECEIPT(0),
  ],
];
const HEADS: readonly [string, Which][] = [
  ['tree-head.json', 'verify'],
  ['log-head.json', 'more'],
];

const LINKS: readonly [string, Parameters<typeof name>[0], RegExp, Which?][] = [
  [
    'the hash of another receipt',
    { down: { receipt_hash: EVENT.event_hash } },
    /its link to receipt_\w+ does not hold/,
  ],
  ['no hash', { down: { receipt_hash: undefined } }, /its link to receipt_\w+ does not hold/],
  ['a callee that names another task', { up: { task_id: 'task_other' } }, /its link to receipt_\w+ does not hold/],
  ['two different events', { up: { event_hash: `sha256:${'1'.repeat(64)}` } }, /its link to receipt_\w+ does not hold/],
  [
    'an event that is another one in the log of the caller',
    { up: { event_id: event(3) }, down: { event_id: event(3) } },
    /its link to receipt_\w+ does not hold/,
  ],
  [
    'a caller that names another receipt',
    { down: { receipt_id: 'receipt_other' } },
    /receipt_\w+ does not name it/,
    'more',
  ],
  [
    'a call that the callee has not',
    { up: { tool_call_id: 'c', call_id: 'x' }, down: { tool_call_id: 'c', receipt_id: undefined } },
    /it accounts for no call x/,
    'more',
  ],
];

/** Which of the two find it: what the first finds the second finds too. */
const finders = (which: Which | undefined) => (which ? [which] : BOTH);

describe.each(hasPython ? (['javascript', 'python'] as const) : (['javascript'] as const))('in %s', (language) => {
  const says = SPEAKERS[language];
  const dir = (name: string) => join(base, `${name}-out`);

  test.each(BOTH)('%s takes what export wrote', async (which) => {
    for (const name of ['one', 'two']) {
      const { leaves } = await verify.check(await filesIn(dir(name)));
      expect(await says(which, [dir(name)])).toBe(`ok 3 receipts, ${leaves.size} events, 0 links`);
    }
  });

  test.each(CHANGES)('%s: found, and named', async (_, change, named, which) => {
    const changed = await copyOf('one', change);
    for (const finder of finders(which)) {
      const found = await says(finder, [changed]);
      expect(found).toMatch(/^BAD /);
      expect(found.slice('BAD '.length)).toContain(await named());
      expect(found).toBe(await SPEAKERS.javascript(finder, [changed]));
    }
  });

  test.each(HEADS)('%s of another log does not pass', async (file, which) => {
    const theirs = await filesIn(dir('two'));
    const changed = await copyOf('one', (files) => {
      files[file] = theirs[file]!;
    });
    expect(await says(which, [changed])).toMatch(new RegExp(`^BAD ${file}: no trusted key signed it`));
  });

  test.each(BOTH)('%s: another key than the trusted one does not count', async (which) => {
    const [ours, theirs] = await Promise.all(
      ['one', 'two'].map(async (name) => JSON.parse((await filesIn(dir(name)))['keys.json']!).keys[0].kid as string),
    );
    expect(await says(which, [dir('one')], [theirs!])).toMatch(/^BAD receipt_\w+: no trusted key signed it as it is/);
    expect(await says(which, [dir('one')], [ours!])).toMatch(/^ok 3 receipts/);
  });

  test.each(BOTH)('%s: what was pruned is left out, and the rest fits', async (which) => {
    const pruned = await prunedExport();
    expect(await says(which, [pruned])).toMatch(/^ok 3 receipts/);
    const changed = await copyOf(pruned, (files) =>
      lines(files, 'events.jsonl', (all) => all.with(-1, all.at(-1)!.replace('"created_at":"2', '"created_at":"1'))),
    );
    if (which === 'more') expect(await says(which, [changed])).toMatch(/^BAD log-head.json: /);
  });

  test('receipts of two gateways that name each other are linked', async () => {
    await name();
    for (const which of BOTH) expect(await says(which, [dir('one'), dir('two')])).toMatch(/^ok 3 receipts.* 1 links$/);
    expect(await linked()).toEqual({ linked: [1, 1], mismatch: false });
  });

  test.each(LINKS)('%s: the link does not hold', async (_, wrong, expected, which) => {
    await name(wrong);
    for (const finder of finders(which)) expect(await says(finder, [dir('one'), dir('two')])).toMatch(expected);
    expect((await linked()).mismatch).toBe(true);
    await name();
  });
});

/** What `tollbridge verify --linked` says. Only the log of the gateway that gave the work shows its event: so from either end. */
async function linked() {
  const [one, two] = [join(base, 'one-out'), join(base, 'two-out')];
  const found = [await followLinks(one, two), await followLinks(two, one)];
  return { linked: found.map((each) => each.linked), mismatch: found.some((each) => each.mismatch > 0) };
}

const PAGE =
  "<!doctype html><script type=module>import * as verify from '/verify.js'; import * as more from '/verify-more.js'; globalThis.twins = { verify, more }</script>";

test('the twins do the same in a browser', async () => {
  const code = new Map(
    await Promise.all(
      ['/verify.js', '/verify-more.js'].map(
        async (path) => [path, await readFile(join(VERIFY, path), 'utf8')] as const,
      ),
    ),
  );
  // Browsers have WebCrypto only where a page is served from this machine or over TLS.
  const server = createServer((request, response) => {
    const found = code.get(request.url ?? '');
    response.setHeader('content-type', found ? 'text/javascript' : 'text/html').end(found ?? PAGE);
  });
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
  onTestFinished(() => void server.close());
  const page = await openPage();
  onTestFinished(() => page.close());
  await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  const inBrowser = (which: Which, exports: readonly Files[]) =>
    page.evaluate(
      async ([which, exports]) => {
        const { check, main } = (globalThis as unknown as { twins: Record<string, Twin> }).twins[which]!;
        try {
          const [one, two] = await Promise.all(exports.map((files) => check(files)));
          return `ok ${one!.receipts.size} receipts, ${one!.leaves.size} events, ${two ? main(one!, two) : 0} links`;
        } catch (thrown) {
          return `BAD ${(thrown as Error).message}`;
        }
      },
      [which, exports] as const,
    );
  const exports = await Promise.all(['one-out', 'two-out'].map((dir) => filesIn(join(base, dir))));
  for (const which of BOTH) {
    expect(await inBrowser(which, exports)).toMatch(/^ok 3 receipts, \d+ events, 1 links$/);
    for (const [name, change, named, finder = which] of CHANGES) {
      if (finder !== which) continue;
      const dir = await copyOf('one', change);
      const found = await inBrowser(which, [await filesIn(dir)]);
      expect(found, name).toContain(await named());
      expect(found, name).toBe(await SPEAKERS.javascript(which, [dir]));
    }
  }
});
