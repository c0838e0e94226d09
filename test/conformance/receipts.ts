/**
 * Holds our receipts against the format `receipt-2026-04-25`: our own example, the format's schema and
 * examples from `fixtures/harn`. Both validators have to agree on every example and on every way of
 * spoiling one by a single change.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { Receipt } from '../../src/model/receipt.ts';
import { validator } from '../../src/model/validate.ts';
import type { Jwks } from '../../src/receipt/seal/public-keys.ts';
import { verifyReceipt } from '../../src/receipt/verify/verify.ts';
import type { Check } from './run.ts';

type Members = Readonly<Record<string, unknown>>;

const OWN = new URL('../../fixtures/receipts/', import.meta.url);
const PUBLISHED = new URL('../../fixtures/harn/', import.meta.url);
const ours = validator(Receipt);

/** What no receipt can be without. */
const REQUIRED = [
  'schema',
  'receipt_id',
  'subject',
  'issuer',
  'issued_at',
  'identifiers',
  'lifecycle',
  'trust',
  'autonomy_budget',
  'replay_input',
  'model_route',
  'cost',
  'side_effects',
  'final_artifacts',
  'chain',
];

export const checks: readonly Check[] = [...ownChecks(), ...publishedChecks()];

function ownChecks(): Check[] {
  const receipt = ownExample();
  const keys = read(new URL('keys.json', OWN)) as unknown as Jwks;
  return [
    { name: 'our example has the shape of a receipt', run: () => equal(ours(receipt), true) },
    { name: 'our example verifies', run: () => equal(verifyReceipt(receipt, { keys }).valid, true) },
    ...spoiled(receipt)
      .filter(({ required }) => required)
      .map(({ name, document }) => ({
        name: `our example ${name} is refused`,
        run: () => equal(ours(document), false),
      })),
  ];
}

function publishedChecks(): Check[] {
  const ajv = new Ajv2020({ strict: false });
  formats.default(ajv);
  const theirs = ajv.compile(
    read(new URL('agents-protocol-receipts/schemas/receipt-2026-04-25.schema.json', PUBLISHED)),
  );
  const valid = [
    ...examples('agents-protocol-receipts/fixtures/valid/'),
    ...examples('agents-protocol-replay/fixtures/valid/').filter(({ file }) => file.includes('receipt')),
    { file: 'our example', document: ownExample() },
  ];
  const invalid = examples('agents-protocol-receipts/fixtures/invalid/');
  return [
    ...valid.map(({ file, document }) => ({
      name: `${file}: both accept it`,
      run: () => equal([ours(document), theirs(document)].join(), 'true,true'),
    })),
    ...invalid.map(({ file, document }) => ({
      name: `${file}: both refuse it`,
      run: () => equal([ours(document), theirs(document)].join(), 'false,false'),
    })),
    ...valid.flatMap(({ file, document }) =>
      spoiled(document).map((change) => ({
        name: `${file} ${change.name}: both say the same`,
        run: () => equal(ours(change.document), theirs(change.document)),
      })),
    ),
  ];
}

/** Every member taken out once, every value replaced once by one of another type, one member too many everywhere. */
function spoiled(receipt: Members): { name: string; document: unknown; required: boolean }[] {
  return locations(receipt).flatMap(({ path, value }) => {
    const at = `/${path.join('/')}`;
    const wrong = typeof value === 'number' ? 'seven' : 7;
    const more = isMembers(value) ? [{ name: `with ${at}/x_new`, path: [...path, 'x_new'], value: 1 }] : [];
    return [
      { name: `without ${at}`, path, value: undefined },
      { name: `with a wrong ${at}`, path, value: wrong },
      { name: `with an empty ${at}`, path, value: '' },
      ...more,
    ].map((change) => ({
      name: change.name,
      document: changed(receipt, change.path, change.value),
      required: path.length === 1 && change.value === undefined && REQUIRED.includes(String(path[0])),
    }));
  });
}

function locations(value: unknown, path: readonly string[] = []): { path: readonly string[]; value: unknown }[] {
  const here = path.length > 0 ? [{ path, value }] : [];
  if (typeof value !== 'object' || value === null) return here;
  return [...here, ...Object.entries(value).flatMap(([key, child]) => locations(child, [...path, key]))];
}

function changed(document: Members, path: readonly string[], value: unknown): unknown {
  const copy = structuredClone(document) as Record<string, unknown>;
  let holder: Record<string, unknown> = copy;
  for (const key of path.slice(0, -1)) holder = holder[key] as Record<string, unknown>;
  const last = path.at(-1) as string;
  if (value !== undefined) holder[last] = value;
  else if (Array.isArray(holder)) holder.splice(Number(last), 1);
  else delete holder[last];
  return copy;
}

function examples(folder: string): { file: string; document: Members }[] {
  const at = new URL(folder, PUBLISHED);
  return readdirSync(at)
    .filter((file) => file.endsWith('.json'))
    .map((file) => ({ file, document: read(new URL(file, at)) }));
}

/** The first receipt of an exported archive, sealed and signed. */
function ownExample(): Members {
  const [first = ''] = readFileSync(new URL('archive.jsonl', OWN), 'utf8').split('\n');
  return JSON.parse(first) as Members;
}

function read(file: URL): Members {
  return JSON.parse(readFileSync(file, 'utf8')) as Members;
}

function isMembers(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function equal(actual: unknown, expected: unknown): void {
  if (actual !== expected) throw new Error(`expected ${expected}, got ${actual}`);
}
