/**
 * The twin of verify.py for browsers and Node, with WebCrypto and nothing else. Takes the texts of what `tollbridge export` wrote:
 *   await check({ 'receipts.jsonl': …, 'events.jsonl': …, 'keys.json': …, 'tree-head.json': …, 'log-head.json': … }, [keyId, …])
 * Resolves to what it found, or rejects with the first bad thing. Without key ids all keys count.
 */
const utf8 = new TextEncoder();
const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
const fromBase64 = (word) => Uint8Array.from(atob(word.replace(/-/g, '+').replace(/_/g, '/')), (c) => c.charCodeAt(0));
export const bytesOf = (hash) => Uint8Array.from(hash.slice(7).match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
export const linesOf = (file) => file.split('\n').filter((line) => line !== '');
export const text = (digest) => `sha256:${hex(digest)}`;

export async function sha(...parts) {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return new Uint8Array(await crypto.subtle.digest('SHA-256', all));
}

export function need(holds, problem) {
  if (!holds) throw new Error(problem);
}

/** RFC 8785: members sorted by UTF-16 code units, numbers and text as ECMAScript writes them. */
export function canonical(value) {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  const members = Object.keys(value).sort();
  return `{${members.map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join(',')}}`;
}

/** RFC 6962. */
export async function root(leaves) {
  if (leaves.length < 2) return leaves[0] ?? (await sha());
  const half = 2 ** (31 - Math.clz32(leaves.length - 1));
  return await sha(Uint8Array.of(1), await root(leaves.slice(0, half)), await root(leaves.slice(half)));
}

async function verifies(key, signature, stated) {
  const known = await crypto.subtle.importKey('raw', key, { name: 'Ed25519' }, false, ['verify']);
  return await crypto.subtle.verify('Ed25519', known, fromBase64(signature.slice(7)), utf8.encode(stated));
}

/** Gives the hash of the value. A key id is the hash of its key, so no other key can be given a known name. */
export async function signed(value, { key_id, signature } = {}, keys, name) {
  const [stated, key] = [text(await sha(utf8.encode(canonical(value)))), keys.get(key_id) ?? new Uint8Array()];
  const known = key_id === `ed25519:${hex(await sha(key)).slice(0, 32)}`;
  need(known && (await verifies(key, signature, stated)), `${name}: no trusted key signed it as it is`);
  return stated;
}

export function keysIn(files, trusted) {
  const jwks = JSON.parse(files['keys.json']).keys.filter(({ kid }) => trusted.length === 0 || trusted.includes(kid));
  return new Map(jwks.map(({ kid, x }) => [kid, fromBase64(x)]));
}

export async function check(files, trusted = []) {
  const keys = keysIn(files, trusted);
  const [receipts, ends, leaves, tasks] = [new Map(), new Map(), new Map(), new Map()];
  // Signed, behind the one before it.
  for (const line of linesOf(files['receipts.jsonl'])) {
    const { signatures: [signature] = [], chain, ...rest } = JSON.parse(line);
    const { receipt_hash: hash, ...place } = chain;
    const [name, workspace] = [rest.receipt_id, rest.identifiers.workspace_ref];
    need((await signed({ ...rest, chain: place }, signature, keys, name)) === hash, `${name}: its hash is another one`);
    need(
      place.previous_receipt_hash === (ends.get(workspace) ?? null),
      `${name}: it does not follow the one before it`,
    );
    receipts.set(name, { ...rest, hash });
    ends.set(workspace, hash);
  }
  const { signature, ...head } = JSON.parse(files['tree-head.json']);
  const { pruned } = JSON.parse(files['log-head.json']);
  const tree = [];
  for (const { hash } of receipts.values()) tree.push(await sha(Uint8Array.of(0), bytesOf(hash)));
  await signed({ ...head, object: 'receipt_tree_head' }, signature, keys, 'tree-head.json');
  const same = head.size === tree.length && head.root === text(await root(tree));
  need(same, 'tree-head.json: it is not of these receipts');
  // In canonical form: a line is what was hashed.
  for (const line of linesOf(files['events.jsonl'])) {
    const [event, leaf] = [JSON.parse(line), await sha(Uint8Array.of(0), utf8.encode(line))];
    const id = `evt_${String(pruned.first + pruned.size + leaves.size).padStart(16, '0')}`;
    need(event.id === id, `${id}: ${event.id} is in its place`);
    leaves.set(event.id, leaf);
    const task = tasks.get(event.resource.id) ?? new Map();
    tasks.set(event.resource.id, task.set(event.sequence, leaf));
  }
  // Sealed over exactly the events of its task; a replay counts none.
  for (const [name, receipt] of receipts) {
    const log = receipt.replay_input.materials[0];
    const { task_id, count = 0 } = log.metadata;
    const task = tasks.get(task_id) ?? new Map();
    const same =
      text(await root([...task.values()].slice(0, count))) === log.sha256 || (!task.has(1) && pruned.size > 0);
    need(same || count === 0, `${name}: it was sealed over other events of its task`);
  }
  return { receipts, leaves };
}

export const linksOf = ({ metadata }) => metadata?.linked_receipts ?? [];

/** Of two exports that were checked: ours states theirs by its hash, and both the event of our log that gave the work. */
export function checkLinks(ours, theirs) {
  let found = 0;
  for (const [name, receipt] of ours.receipts) {
    for (const link of linksOf(receipt)) {
      const callee = theirs.receipts.get(link.receipt_id);
      if (!callee) continue;
      const event = ours.leaves.get(link.event_id);
      const back = linksOf(callee).filter(({ task_id }) => task_id === receipt.identifiers.task_id);
      const answered = back.some(({ event_hash }) => event_hash === link.event_hash);
      const same = link.receipt_hash === callee.hash && answered && (!event || link.event_hash === text(event));
      need(same, `${name}: its link to ${callee.receipt_id} does not hold`);
      found += 1;
    }
  }
  return found;
}

/** Both ways. Gives how many links there are. */
export function main(one, other, links = checkLinks) {
  const found = links(one, other) + links(other, one);
  need(found > 0, 'the two gateways name no receipt of each other');
  return found;
}
