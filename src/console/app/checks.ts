/** The checks of one receipt, each by itself, with the code of examples/verify and the browser's own cryptography. */
import { canonical, keysIn, linesOf, root, sha, signed, text } from '../../../examples/verify/verify.js';
import { bag, type LogEvent, str } from './rows.ts';
import { type Head, type Inclusion, isIncluded } from './tree.ts';

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
  /** The receipt as the log has it, and the one before it in its chain, as far as this reader may see them. */
  readonly others: readonly Bag[];
  readonly events: readonly LogEvent[] | undefined;
  readonly schema: Bag | undefined;
  /** The signed head of the tree of receipts, and the proof that this receipt is in it. */
  readonly tree: { readonly head: Head; readonly inclusion: Inclusion } | undefined;
  /** Files of another gateway's export, where a person has chosen some. */
  readonly other: OtherExport | undefined;
}

export interface OtherExport {
  readonly receipts: string;
  readonly keys: string;
}

const utf8 = new TextEncoder();

export async function checksOf({
  text: json,
  keys,
  others,
  events,
  schema,
  tree,
  other,
}: Material): Promise<readonly Check[]> {
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
    logCheck(receipt, others),
    await eventsCheck(receipt, events),
    await treeCheck(hash, tree, keys),
    await linksCheck(receipt, other),
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
    if ((thrown as Error).name === 'NotSupportedError')
      return unknown('Signature', 'this browser cannot check Ed25519 signatures');
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

/** Whether the log holds this very document, to the last member: a signature does not cover what stands beside it. */
function logCheck(receipt: Bag, others: readonly Bag[]): Check {
  const same = others.find((other) => other.receipt_id === receipt.receipt_id);
  if (!same) return unknown('Log', 'the log has no receipt of this id that you can see');
  return canonical(same) === canonical(receipt)
    ? ok('Log', 'the log holds this very document')
    : bad('Log', 'the log holds another document under this id');
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

/** Whether the signed tree over all receipts holds this one: the head is signed, and the path leads from the receipt to its root. */
async function treeCheck(hash: string, tree: Material['tree'], keys: string): Promise<Check> {
  if (!tree) return unknown('Tree', 'there is no proof of its place in the tree of all receipts');
  const { head, inclusion } = tree;
  const wrong = await headTrouble(head, keys);
  if (wrong) return bad('Tree', wrong);
  return (await isIncluded(hash, inclusion, head.root)) && inclusion.size === head.size
    ? ok(
        'Tree',
        `receipt ${inclusion.index + 1} of the ${head.size} in the signed tree, root ${head.root.slice(0, 23)}…`,
      )
    : bad('Tree', `the signed tree of ${head.size} receipts does not hold this one`);
}

/** Why a head of the tree is not what the gateway's key signed; undefined when it is. */
export async function headTrouble({ signature, ...head }: Head, keys: string): Promise<string | undefined> {
  try {
    await signed(
      { ...head, object: 'receipt_tree_head' },
      signature,
      keysIn({ 'keys.json': keys }, []),
      'the tree head',
    );
    return undefined;
  } catch (thrown) {
    return (thrown as Error).message || 'the tree head is not what was signed';
  }
}

/** Receipts of other gateways that this one names. A claim of this side alone is not enough: the other's document has to hold. */
async function linksCheck(receipt: Bag, other: OtherExport | undefined): Promise<Check> {
  const links = bag(receipt.metadata).linked_receipts;
  if (!Array.isArray(links) || links.length === 0) return ok('Links', 'no receipt of another gateway is named');
  const named = links.map(bag);
  if (named.some(({ checked }) => checked === 'invalid'))
    return bad('Links', 'a linked receipt was not valid when it came');
  const words = named.map((link) => `${str(link.receipt_id) || str(link.task_id)} (${str(link.checked) || 'claimed'})`);
  if (!other) return unknown('Links', `named, to be checked against the other gateway's export: ${words.join(', ')}`);
  const theirs = await receiptsIn(other);
  const found: string[] = [];
  for (const link of named) {
    const callee =
      theirs.get(str(link.receipt_id)) ?? [...theirs.values()].find((one) => one.task === str(link.task_id));
    if (!callee)
      return unknown('Links', `${str(link.receipt_id) || str(link.task_id)} is not among the receipts given`);
    if (callee.trouble) return bad('Links', callee.trouble);
    const same = link.receipt_hash === undefined || link.receipt_hash === null || link.receipt_hash === callee.hash;
    const task = bag(receipt.identifiers).task_id;
    const back = callee.links.some(
      (one) => one.task_id === task && (!link.event_hash || one.event_hash === link.event_hash),
    );
    if (!same) return bad('Links', `${callee.id} has another hash than the one named here`);
    if (!back) return bad('Links', `${callee.id} does not name this task`);
    found.push(callee.id);
  }
  return ok('Links', `signed by the other gateway, and each names the other: ${found.join(', ')}`);
}

interface OtherReceipt {
  readonly id: string;
  readonly task: string;
  readonly hash: string;
  readonly links: readonly Bag[];
  readonly trouble: string | undefined;
}

async function receiptsIn({ receipts, keys }: OtherExport): Promise<ReadonlyMap<string, OtherReceipt>> {
  const known = keysIn({ 'keys.json': keys }, []);
  const found = new Map<string, OtherReceipt>();
  for (const line of linesOf(receipts)) {
    const { signatures, chain, ...rest } = JSON.parse(line) as Bag;
    const [signature] = (Array.isArray(signatures) ? signatures : []) as { key_id: string; signature: string }[];
    const { receipt_hash: stated, ...link } = bag(chain);
    const id = str(rest.receipt_id);
    let trouble: string | undefined;
    let hash = '';
    try {
      hash = await signed({ ...rest, chain: link }, signature, known, id);
      if (hash !== stated) trouble = `${id} states another hash than it has`;
    } catch (thrown) {
      trouble = (thrown as Error).message;
    }
    const links = bag(rest.metadata).linked_receipts;
    const task = str(bag(rest.identifiers).task_id);
    found.set(id, { id, task, hash, trouble, links: Array.isArray(links) ? links.map(bag) : [] });
  }
  return found;
}
