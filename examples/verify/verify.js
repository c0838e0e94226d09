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

/** Gives the hash of the value. A key id is the hash of its key, so no other key can be given a known name. */
export async function signed(value, { key_id, signature }, keys, name) {
  const [stated, key] = [text(await sha(utf8.encode(canonical(value)))), keys.get(key_id) ?? new Uint8Array()];
  need(key_id === `ed25519:${hex(await sha(key)).slice(0, 32)}`, `${name}: its key is not known or not trusted`);
  const known = await crypto.subtle.importKey('raw', key, { name: 'Ed25519' }, false, ['verify']);
  const made = fromBase64(signature.slice(7));
  need(await crypto.subtle.verify('Ed25519', known, made, utf8.encode(stated)), `${name}: it is not what was signed`);
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
    need(signature, `${name}: it has no signature`);
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
    const own = tasks.get(event.resource.id) ?? [];
    tasks.set(event.resource.id, own);
    // Unless the beginning of its task was pruned.
    if (event.sequence === own.length + 1) own.push(leaf);
  }
  // Sealed over exactly the events of its task; a replay counts none.
  for (const [name, receipt] of receipts) {
    const log = receipt.replay_input.materials[0];
    const { task_id, count = 0 } = log.metadata;
    const own = (tasks.get(task_id) ?? []).slice(0, count);
    const skip = count === 0 || (own.length === 0 && pruned.size > 0);
    need(skip || text(await root(own)) === log.sha256, `${name}: it was sealed over other events of its task`);
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
      need(link.receipt_hash === callee.hash, `${name}: its link is to another ${callee.receipt_id}`);
      const answered = back.some(({ event_hash }) => event_hash === link.event_hash);
      need(answered, `${name}: ${callee.receipt_id} names another task or event`);
      need(!event || link.event_hash === text(event), `${name}: its link is to another ${link.event_id}`);
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
