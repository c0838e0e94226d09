/** Receipts: issued with every end, sealed so that any change shows, chained, and readable by anyone with the keys. */
import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { decode } from 'cborg';
import { Receipt as Shape } from '../../../../src/model/receipt.ts';
import type { Outcome, ReceiptResource, Task } from '../../../../src/model/resources.ts';
import { check } from '../../../../src/model/validate.ts';
import { equal, text, truth } from '../harness/expect.ts';
import { category, each } from '../harness/suite.ts';
import type { Target } from '../harness/target.ts';
import type { List } from '../harness/wire.ts';
import { batchRoot, canonical, type Json, type Jwk, type Receipt, receiptHash, sha256, trouble } from '../proof.ts';

const JSON_TYPE = 'application/vnd.harn.receipt+json';
const CBOR_TYPE = 'application/vnd.harn.receipt+cbor';

interface Parts {
  readonly receipt_id: string;
  readonly subject: { readonly object: string; readonly id: string };
  readonly issuer: { readonly id: string; readonly public_key_id?: string };
  readonly identifiers: { readonly workspace_ref: string; readonly session_id: string; readonly task_id: string };
  readonly lifecycle: { readonly started_at: string; readonly completed_at: string; readonly final_state: string };
  readonly chain: { readonly previous_receipt_hash: string | null; readonly receipt_hash: string };
  readonly side_effects: { readonly tool_calls: readonly Record<string, string>[]; readonly [more: string]: unknown };
  readonly approvals?: readonly Record<string, string>[];
  readonly final_artifacts: readonly Record<string, string>[];
  readonly replay_input: { readonly determinism: string };
}

async function resource(at: Target, id: string | null | undefined): Promise<ReceiptResource> {
  return await at.ok<ReceiptResource>('GET', `/v1/receipts/${text(id, 'receipt_id')}`);
}
/** The document itself, from inside its envelope. */
async function document(at: Target, task: Task): Promise<Receipt & Parts> {
  const { wire } = await resource(at, task.receipt_id);
  return (wire as { payload: Receipt & Parts }).payload;
}
async function keys(at: Target): Promise<readonly Jwk[]> {
  const { keys: published } = await at.ok<{ keys: Jwk[] }>('GET', '/.well-known/harn-receipt-keys.json', {
    as: null,
    version: null,
  });
  return published;
}
const verification = (at: Target, id: string, body: object = {}) =>
  at.ok<{ valid: boolean; checked_at: string; reason?: string | null; details: Record<string, unknown> }>(
    'POST',
    `/v1/receipts/${id}/verify`,
    { body },
  );

async function approved(at: Target, yes: boolean): Promise<Task> {
  const { id } = await at.submit('send the plan to bo');
  await at.reaches(id, 'AUTH_REQUIRED');
  const { data } = await at.made<List<{ id: string }>>('GET', `/v1/tasks/${id}/permission-requests`);
  await at.ok('POST', `/v1/permission-requests/${data[0]?.id}/respond`, { body: { approved: yes, reason: 'said so' } });
  return await at.ended(id);
}

async function canceled(at: Target): Promise<Task> {
  const { id } = await at.submit('wait 500');
  await at.reaches(id, 'WORKING');
  return await at.ok<Task>('POST', `/v1/tasks/${id}/cancel`, { body: { reason: 'enough' } });
}

const ENDS: readonly (readonly [string, (at: Target) => Promise<Task>, string])[] = [
  ['completed', (at) => at.done('hello then read plan'), 'SUCCEEDED'],
  ['failed', (at) => at.done('fail now'), 'FAILED'],
  ['canceled', canceled, 'CANCELED'],
];

/** Ways to change a sealed receipt that nobody may get away with. */
const TAMPERINGS: readonly (readonly [string, (receipt: Record<string, Json>) => void])[] = [
  ['another final state', (r) => Object.assign(r.lifecycle as object, { final_state: 'FAILED' })],
  ['another subject', (r) => Object.assign(r.subject as object, { id: 'task_other' })],
  ['another time', (r) => Object.assign(r, { issued_at: '2020-01-01T00:00:00.000Z' })],
  ['a tool call less', (r) => (r.side_effects as { tool_calls: Json[] }).tool_calls.pop()],
  ['another cost', (r) => Object.assign(r.cost as object, { total: 1 })],
  ['another predecessor', (r) => Object.assign(r.chain as object, { previous_receipt_hash: sha256('x') })],
  ['metadata more', (r) => Object.assign(r.metadata as object, { x: 1 })],
  ['another hash to go with the change', reseal],
  ['a signature by someone else', (r) => Object.assign((r.signatures as object[])[0]!, { key_id: 'ed25519:00' })],
  ['a signature over something else', (r) => flip(r)],
  ['no signature', (r) => Object.assign(r, { signatures: [] })],
];

/** A forger who knows the rules can make the hash right again, but has no key. */
function reseal(receipt: Record<string, Json>): void {
  Object.assign(receipt.lifecycle as object, { final_state: 'FAILED' });
  Object.assign(receipt.chain as object, { receipt_hash: receiptHash(receipt) });
}

function flip(receipt: Record<string, Json>): void {
  const [first] = receipt.signatures as { signature: string }[];
  const bytes = Buffer.from(first!.signature.replace(/^base64:/, ''), 'base64');
  bytes[0]! ^= 1;
  first!.signature = `base64:${bytes.toString('base64')}`;
}

function publishedSchema() {
  const path = '../../../../fixtures/harn/agents-protocol-receipts/schemas/receipt-2026-04-25.schema.json';
  const file = new URL(path, import.meta.url);
  const ajv = new Ajv2020({ strict: false });
  formats.default(ajv);
  return ajv.compile(JSON.parse(readFileSync(file, 'utf8')) as object);
}

export const receipts = category('receipts-beyond', {
  ...each(
    ENDS,
    ([how]) => `a ${how} task has exactly one receipt as soon as its end shows`,
    async ([, bring, state], at) => {
      const task = await bring(at);
      const { data } = await at.ok<List<ReceiptResource>>('GET', `/v1/tasks/${task.id}/receipts`);
      equal(
        data.map(({ id }) => id),
        [task.receipt_id],
        'receipts of the task',
      );
      const receipt = await document(at, task);
      equal(receipt.lifecycle.final_state, state, 'final_state');
      equal([receipt.subject.object, receipt.subject.id], ['task', task.id], 'subject');
      equal(
        [receipt.identifiers.workspace_ref, receipt.identifiers.session_id, receipt.identifiers.task_id],
        [task.workspace_id, task.session_id, task.id],
        'identifiers',
      );
    },
  ),
  ...each(
    ENDS,
    ([how]) => `the receipt of a ${how} task has the published shape`,
    async ([, bring], at) => {
      const receipt = await document(at, await bring(at));
      check(Shape, receipt, 'receipt');
      const published = publishedSchema();
      truth(published(receipt), `the published schema: ${JSON.stringify(published.errors)}`);
    },
  ),
  ...each(
    ENDS,
    ([how]) => `the receipt of a ${how} task: hash and signature, checked independently`,
    async ([, bring], at) => {
      equal(trouble(await document(at, await bring(at)), await keys(at)), undefined, 'trouble');
    },
  ),
  async 'the resource wraps the document as the description says'(at) {
    const task = await at.done('hello');
    const one = await resource(at, task.receipt_id);
    const wire = one.wire as Record<string, unknown>;
    equal(
      [one.object, one.format, wire.schema_version],
      ['receipt', 'receipt-2026-04-25', 'receipt-2026-04-25'],
      'words',
    );
    equal(
      [one.subject, wire.subject],
      [
        { object: 'task', id: task.id },
        { object: 'task', id: task.id },
      ],
      'subject',
    );
    text(one.summary, 'summary');
    text(one.issuer, 'issuer');
    text(one.issued_at, 'issued_at');
  },
  async 'keys are published for anyone, public halves only'(at) {
    const published = await keys(at);
    truth(published.length > 0, 'there are no keys');
    for (const key of published) {
      equal([key.kty, key.crv], ['OKP', 'Ed25519'], 'kind of key');
      truth(!('d' in key), 'a private key is published');
      text(key.kid, 'kid');
    }
  },
  async 'the issuer names the key it signs with'(at) {
    const receipt = await document(at, await at.done('hello'));
    const [signature] = receipt.signatures as unknown as { key_id: string }[];
    equal(receipt.issuer.public_key_id, signature?.key_id, 'public_key_id');
  },
  async 'receipts of one workspace are a chain'(at) {
    const workspace = await at.workspace();
    const session = await at.ok<{ id: string }>('POST', '/v1/sessions', { body: { workspace_id: workspace.id } });
    let previous: string | null = null;
    for (const words of ['hello', 'read plan', 'fail now']) {
      const { chain } = await document(at, await at.done(words, session.id));
      equal(chain.previous_receipt_hash, previous, `predecessor of "${words}"`);
      previous = chain.receipt_hash;
    }
  },
  ...each(
    TAMPERINGS,
    ([what]) => `tampering shows: ${what}`,
    async ([what, tamper], at) => {
      const receipt = await document(at, await at.done('read plan'));
      const published = await keys(at);
      equal(trouble(receipt, published), undefined, 'before');
      const copy = structuredClone(receipt) as unknown as Record<string, Json>;
      tamper(copy);
      truth(trouble(copy, published), `${what} goes unnoticed`);
    },
  ),
  async 'the verify API recomputes and says what it found'(at) {
    const task = await at.done('hello');
    const found = await verification(at, task.receipt_id!);
    equal([found.valid, found.reason ?? null], [true, null], 'valid and reason');
    text(found.checked_at, 'checked_at');
    const receipt = await document(at, task);
    equal((found.details.hash as { actual?: string })?.actual, receipt.chain.receipt_hash, 'details.hash.actual');
  },
  async 'the verify API works out anew that the events of the task are the ones it was sealed over'(at) {
    for (const words of ['hello then read plan', 'fail now']) {
      const { receipt_id } = await at.done(words);
      equal((await verification(at, receipt_id!)).details.events, 'ok', `details.events of "${words}"`);
    }
  },
  async 'a verification leaves a trace'(at) {
    const task = await at.done('hello');
    await verification(at, task.receipt_id!);
    const reported = await at.events(`/v1/events?workspace_id=${task.workspace_id}`);
    truth(
      reported.some((e) => e.event === 'receipt.verified' && e.receipt_id === task.receipt_id),
      'no receipt.verified',
    );
  },
  ...each(
    [
      ['a key nobody has', { trust_anchor: 'ed25519:00000000000000000000000000000000' }],
      ['a hash no chain reaches', { trust_anchor: sha256('nothing') }],
      ['a time before the key was made', { at_time: '2001-01-01T00:00:00.000Z' }],
    ] as const,
    ([what]) => `verifying against ${what} is 200 and not valid`,
    async ([, body], at) => {
      const task = await at.done('hello');
      const found = await verification(at, task.receipt_id!, body);
      equal(found.valid, false, 'valid');
      text(found.reason, 'reason');
    },
  ),
  async 'verifying against the right key, or an earlier receipt, is valid'(at) {
    const first = await at.done('hello');
    const second = await at.done('hello', first.session_id);
    const [anchor, { issuer }] = [await document(at, first), await document(at, second)];
    for (const trust_anchor of [issuer.public_key_id!, anchor.chain.receipt_hash]) {
      equal((await verification(at, second.receipt_id!, { trust_anchor })).valid, true, trust_anchor);
    }
  },
  async 'the bare document by its media type'(at) {
    const task = await at.done('hello');
    const { headers, body } = await at.ask<Receipt>('GET', `/v1/receipts/${task.receipt_id}`, {
      headers: { accept: JSON_TYPE },
    });
    truth(headers.get('content-type')?.startsWith(JSON_TYPE), `content-type is ${headers.get('content-type')}`);
    equal(body, await document(at, task), 'the document');
  },
  async 'the same document as CBOR, with the same hash'(at) {
    const task = await at.done('hello then read plan');
    const answer = await at.open('GET', `/v1/receipts/${task.receipt_id}`, { headers: { accept: CBOR_TYPE } });
    truth(answer.headers.get('content-type')?.startsWith(CBOR_TYPE), 'content-type');
    const decoded = decode(new Uint8Array(await answer.arrayBuffer())) as Receipt;
    equal(canonical(decoded), canonical(await document(at, task)), 'the document');
    equal(trouble(decoded, await keys(at)), undefined, 'trouble');
  },
  async 'task, outcome and event lead to the receipt'(at) {
    const task = await at.done('hello');
    const outcome = await at.ok<Outcome>('GET', `/v1/outcomes/${task.outcome_id}`);
    const issued = (await at.events(`/v1/tasks/${task.id}/events`)).find(({ event }) => event === 'receipt.issued');
    equal([outcome.receipt_id, issued?.receipt_id], [task.receipt_id, task.receipt_id], 'outcome and event');
  },
  async 'tool calls are in it with hashes of what went in and came out'(at) {
    const task = await at.done('read plan');
    const reported = await at.events(`/v1/tasks/${task.id}/events`);
    const payload = (kind: string) => reported.find(({ event }) => event === kind)?.payload as Record<string, Json>;
    const [call] = (await document(at, task)).side_effects.tool_calls;
    equal([call?.tool, call?.status], [payload('tool.requested')?.name, 'succeeded'], 'tool and status');
    equal(call?.call_id, payload('tool.requested')?.tool_call_id, 'call_id');
    equal(call?.input_hash, sha256(canonical(payload('tool.requested')?.input ?? null)), 'input_hash');
    equal(call?.output_hash, sha256(canonical(payload('tool.completed')?.output ?? null)), 'output_hash');
  },
  ...each(
    [true, false],
    (yes) => `a person's ${yes ? 'yes' : 'no'} is in it, with who and when`,
    async (yes, at) => {
      const receipt = await document(at, await approved(at, yes));
      const [approval] = receipt.approvals ?? [];
      equal(approval?.decision, yes ? 'approved' : 'denied', 'decision');
      text(approval?.actor, 'actor');
      text(approval?.action, 'action');
      text(approval?.decided_at, 'decided_at');
      const ran = receipt.side_effects.tool_calls.some(({ status }) => status === 'succeeded');
      equal(ran, yes, 'whether the call is shown as done');
    },
  ),
  async 'files are in it by hash'(at) {
    const task = await at.done('artifact');
    const { data } = await at.ok<List<{ id: string; sha256: string }>>('GET', `/v1/artifacts?task_id=${task.id}`);
    const receipt = await document(at, task);
    const hashes = (files: readonly { sha256?: string }[]) =>
      files.map((file) => file.sha256?.replace('sha256:', '')).toSorted();
    truth(data.length > 0, 'the task made no files');
    equal(hashes(receipt.final_artifacts), hashes(data), 'hashes');
  },
  async 'what was running when it was canceled is in it'(at) {
    const receipt = await document(at, await canceled(at));
    truth(receipt.lifecycle.started_at <= receipt.lifecycle.completed_at, 'the times are the wrong way round');
    equal(receipt.lifecycle.final_state, 'CANCELED', 'final_state');
  },
  async 'receipts of others are read with receipts:read and others:read, and nothing else'(at) {
    const { receipt_id } = await at.done('hello');
    const { key } = await at.mine().issue({ id: 'auditor', scopes: ['receipts:read', 'others:read'] });
    equal((await at.ask('GET', `/v1/receipts/${receipt_id}`, { as: key })).status, 200, 'status');
  },
  async 'a batch has the root of its leaves'(at) {
    const workspace = await at.workspace();
    const session = await at.ok<{ id: string }>('POST', '/v1/sessions', { body: { workspace_id: workspace.id } });
    const hashes: string[] = [];
    for (const words of ['hello', 'read plan', 'fail now']) {
      hashes.push((await document(at, await at.done(words, session.id))).chain.receipt_hash);
    }
    const batch = await at.made<{ leaves: string[]; root: string }>('GET', `/v1/receipts/batches/${workspace.id}.0`);
    equal([batch.leaves, batch.root], [hashes, batchRoot(hashes)], 'leaves and root');
  },
  async 'a receipt is the same after the process was killed, and still verifies'(at) {
    const task = await at.done('hello');
    const before = await at.ask('GET', `/v1/receipts/${task.receipt_id}`);
    await at.mine().crash();
    equal((await at.ask('GET', `/v1/receipts/${task.receipt_id}`)).text, before.text, 'the receipt');
    equal((await verification(at, task.receipt_id!)).valid, true, 'valid');
  },
  async 'a receipt cannot be changed or removed'(at) {
    const { receipt_id } = await at.done('hello');
    for (const method of ['PUT', 'PATCH', 'DELETE']) {
      const { status } = await at.ask(method, `/v1/receipts/${receipt_id}`, { body: {} });
      truth(status === 404 || status === 405, `${method} is ${status}`);
    }
  },
});
