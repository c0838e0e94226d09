/** The checks of one receipt, each by itself, with the code of examples/verify and the browser's own cryptography. */
import { canonical, keysIn, root, sha, signed, text } from '../../../examples/verify/verify.js';
import { bag, type LogEvent, str } from './rows.ts';

export interface Check {
  readonly name: string;
  readonly state: 'ok' | 'bad' | 'unknown';
  readonly found: string;
}

type Bag = Readonly<Record<string, unknown>>;

export interface Material {
  /** The receipt as text, as it is or as a person changed it. */
  readonly text: string;
  /** The published keys, as text. */
  readonly keys: string;
  /** Receipts of the same workspace that this reader may see. */
  readonly others: readonly Bag[];
  readonly events: readonly LogEvent[] | undefined;
  readonly schema: Bag | undefined;
}

const utf8 = new TextEncoder();

export async function checksOf({ text: json, keys, others, events, schema }: Material): Promise<readonly Check[]> {
  let receipt: Bag;
  try {
    receipt = JSON.parse(json);
  } catch (thrown) {
    return [bad('Document', `it is not JSON: ${(thrown as Error).message}`)];
  }
  const { signatures, chain, ...rest } = receipt;
  const [signature] = (Array.isArray(signatures) ? signatures : []) as { key_id: string; signature: string }[];
  const { receipt_hash: stated, ...link } = bag(chain);
  const body = { ...rest, chain: link };
  const hash: string = text(await sha(utf8.encode(canonical(body))));
  return [
    schemaCheck(receipt, schema),
    hash === stated
      ? ok('Hash', `recomputed over the canonical document: ${hash}`)
      : bad('Hash', `the document has ${hash}, and states ${String(stated)}`),
    await signatureCheck(body, signature, keys),
    chainCheck(receipt, others),
    logCheck(receipt, String(stated), others),
    await eventsCheck(receipt, events),
    linksCheck(receipt),
  ];
}

function ok(name: string, found: string): Check {
  return { name, state: 'ok', found };
}
function bad(name: string, found: string): Check {
  return { name, state: 'bad', found };
}
function unknown(name: string, found: string): Check {
  return { name, state: 'unknown', found };
}

/** Required members and no unknown ones at the top; the gateway publishes the whole schema for other tools. */
function schemaCheck(receipt: Bag, schema: Bag | undefined): Check {
  if (!schema) return unknown('Schema', 'the published schema could not be read');
  const required = (schema.required ?? []) as readonly string[];
  const missing = required.filter((name) => !Object.hasOwn(receipt, name));
  if (missing.length > 0) return bad('Schema', `missing: ${missing.join(', ')}`);
  const wrong = Object.entries(bag(schema.properties)).flatMap(([name, member]) => {
    const type = bag(member).type;
    const value = receipt[name];
    const is = Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value;
    const wanted = Array.isArray(type) ? type : [type];
    return value === undefined ||
      typeof type === 'undefined' ||
      wanted.includes(is) ||
      (is === 'number' && wanted.includes('integer'))
      ? []
      : [`${name} is ${is}`];
  });
  return wrong.length > 0
    ? bad('Schema', wrong.join(', '))
    : ok('Schema', `${str(receipt.schema) || 'receipt'}: ${required.length} required members are there`);
}

async function signatureCheck(
  body: Bag,
  signature: { key_id: string; signature: string } | undefined,
  keys: string,
): Promise<Check> {
  if (!signature) return bad('Signature', 'it has no signature');
  try {
    await signed(body, signature, keysIn({ 'keys.json': keys }, []), 'the receipt');
    return ok('Signature', `Ed25519, by the published key ${signature.key_id}`);
  } catch (thrown) {
    return bad('Signature', (thrown as Error).message || 'it is not what was signed');
  }
}

function chainCheck(receipt: Bag, others: readonly Bag[]): Check {
  const before = bag(receipt.chain).previous_receipt_hash;
  if (before === null || before === undefined) {
    return bag(bag(receipt.metadata).chain).index === 0
      ? ok('Chain', 'the first receipt of its workspace')
      : bad('Chain', 'it names no receipt before it, and is not the first');
  }
  const found = others.find((other) => bag(other.chain).receipt_hash === before);
  if (found) return ok('Chain', `follows ${str(found.receipt_id)}`);
  return unknown('Chain', `the receipt before it (${str(before).slice(0, 23)}…) is not among those you can see`);
}

/**
 * Whether the log holds this very receipt. The signed head of the tree over all receipts needs every receipt, which this reader may
 * not see: `tollbridge verify all` checks it, and the row says so.
 */
function logCheck(receipt: Bag, stated: string, others: readonly Bag[]): Check {
  const same = others.find((other) => other.receipt_id === receipt.receipt_id);
  if (!same) return unknown('Log', 'the log has no receipt of this id that you can see');
  return str(bag(same.chain).receipt_hash) === stated
    ? ok('Log', 'the log holds this receipt with this hash (the signed tree over all receipts: tollbridge verify all)')
    : bad('Log', 'the log holds this receipt with another hash');
}

async function eventsCheck(receipt: Bag, events: readonly LogEvent[] | undefined): Promise<Check> {
  const materials = bag(receipt.replay_input).materials;
  const log = bag(Array.isArray(materials) ? materials[0] : undefined);
  const { count, task_id: task } = bag(log.metadata);
  if (typeof count !== 'number' || count === 0) return unknown('Events', 'it commits to no events of its own');
  if (!events) return unknown('Events', `the events of ${str(task)} could not be read`);
  const own = events.slice(0, count);
  if (own.length < count) return unknown('Events', `${count} events are committed to; ${own.length} can be read`);
  const leaves = await Promise.all(own.map((event) => sha(Uint8Array.of(0), utf8.encode(canonical(event)))));
  const found: string = text(await root(leaves));
  return found === log.sha256
    ? ok('Events', `${count} events of ${str(task)}, root ${found.slice(0, 23)}…`)
    : bad(
        'Events',
        `the ${count} events of its task have root ${found.slice(0, 23)}…, it states ${str(log.sha256).slice(0, 23)}…`,
      );
}

function linksCheck(receipt: Bag): Check {
  const links = bag(receipt.metadata).linked_receipts;
  if (!Array.isArray(links) || links.length === 0) return ok('Links', 'no receipt of another gateway is named');
  const words = links.map(
    (link) => `${str(bag(link).receipt_id) || str(bag(link).task_id)} (${str(bag(link).checked) || 'claimed'})`,
  );
  const wrong = links.some((link) => bag(link).checked === 'invalid');
  return wrong
    ? bad('Links', words.join(', '))
    : unknown('Links', `named, to be checked against the other gateway's export: ${words.join(', ')}`);
}
