/** The resources that shape work: personas and quotas that are enforced, memories that stay apart, files, the card. */
import { createHash, createHmac } from 'node:crypto';
import type {
  Artifact,
  Connector,
  Memory,
  Persona,
  Quota,
  Skill,
  Task,
  Vault,
} from '../../../../src/model/resources.ts';
import { absent, among, equal, list, text, truth } from '../harness/expect.ts';
import { WEBHOOK_SECRET } from '../harness/gateway.ts';
import { category, each } from '../harness/suite.ts';
import { said, type Target, unique } from '../harness/target.ts';
import type { List } from '../harness/wire.ts';
import { canonical, type Json, type Jwk, signatureTrouble } from '../proof.ts';

const persona = (more: object = {}) => ({
  name: unique('persona'),
  version: '1',
  entry_workflow: 'demo',
  description: 'made for a check',
  autonomy_tier: 'act_auto',
  receipt_policy: 'required',
  ...more,
});
const makePersona = (at: Target, more?: object) => at.made<Persona>('POST', '/v1/personas', { body: persona(more) });
const makeQuota = (at: Target, limits: object, more: object = {}) =>
  at.made<Quota>('POST', '/v1/quotas', { body: { scope: 'persona', limits, ...more } });

async function kindsOf(at: Target, task: Task): Promise<string[]> {
  return (await at.events(`/v1/tasks/${task.id}/events`)).map(({ event }) => event);
}

const EMPTY = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
const bytes = Buffer.from('0123456789');
const hash = createHash('sha256').update(bytes).digest('hex');
const registered = async (at: Target, more: object = {}) =>
  at.made<Artifact>('POST', '/v1/artifacts', {
    body: {
      kind: 'file',
      mime_type: 'text/plain',
      visibility: 'public',
      workspace_id: (await at.workspace()).id,
      ...more,
    },
  });

async function signedDelivery(
  at: Target,
  connector: string,
  delivery: string,
  payload: object,
  secret = WEBHOOK_SECRET,
) {
  const raw = JSON.stringify(payload);
  const signature = createHmac('sha256', secret).update(raw).digest('hex');
  const headers = { 'x-harn-signature': `sha256=${signature}`, 'x-harn-delivery': delivery };
  return await at.ask<Task>('POST', `/v1/connectors/${connector}/deliveries`, { raw, headers, as: null });
}

async function connector(at: Target): Promise<Connector> {
  at.mine();
  const session = await at.session();
  const body = {
    provider: 'conformance',
    workspace_id: session.workspace_id,
    event_kinds: ['webhook.received'],
    auth: { secret_name: 'WEBHOOK' },
    webhook: {},
    target_session_id: session.id,
  };
  return await at.made<Connector>('POST', '/v1/connectors', { body });
}

const LISTED: readonly (readonly [string, object])[] = [
  ['personas', persona()],
  ['workspaces', { name: 'w', root: 'harn://x' }],
  ['memories', { scope: 'tenant', owner_id: 'x', content: { any: 'thing' }, provenance: { source: 'check' } }],
  ['vaults', { provider: 'env', capabilities: ['read'] }],
  ['quotas', { scope: 'persona', limits: { tasks: 5 } }],
  ['skills', { name: 'add', description: 'adds', input_schema: { type: 'object' }, output_schema: null }],
];

export const resources = category('resources', {
  ...each(
    LISTED,
    ([kind]) => `${kind}: made, read back the same, and listed`,
    async ([kind, body], at) => {
      const made = await at.made<{ id: string; object: string }>('POST', `/v1/${kind}`, { body });
      for (const member of ['id', 'object', 'created_at', 'updated_at', 'metadata']) {
        truth(member in made, `${member} is missing`);
      }
      equal(await at.ok('GET', `/v1/${kind}/${made.id}`), made, 'on reading');
      let cursor = '';
      for (;;) {
        const { data, page } = await at.ok<List<{ id: string }>>('GET', `/v1/${kind}?limit=200${cursor}`);
        if (data.some(({ id }) => id === made.id)) return;
        truth(page.has_more, 'it is in no page of the list');
        cursor = `&cursor=${page.next_cursor}`;
      }
    },
  ),
  async 'persona: what may change changes, the rest stays'(at) {
    const made = await makePersona(at);
    const changed = await at.ok<Persona>('PATCH', `/v1/personas/${made.id}`, { body: { description: 'changed' } });
    equal([changed.description, changed.name, changed.version], ['changed', made.name, made.version], 'members');
  },
  async 'persona: shadow does nothing, and the task still ends'(at) {
    const { id } = await makePersona(at, { autonomy_tier: 'shadow' });
    const { id: taskId } = await at.submit('write log x', undefined, { with: { persona_id: id } });
    const kinds = await kindsOf(at, await at.ended(taskId));
    truth(!kinds.includes('tool.completed'), 'the tool ran');
    truth(kinds.includes('tool.denied'), 'there is no tool.denied');
  },
  async 'persona: suggest asks before it acts'(at) {
    const { id } = await makePersona(at, { autonomy_tier: 'suggest' });
    const { id: taskId } = await at.submit('write log x', undefined, { with: { persona_id: id } });
    await at.reaches(taskId, 'AUTH_REQUIRED');
    await at.ok('POST', `/v1/tasks/${taskId}/cancel`, { body: {} });
  },
  async 'persona: act_auto acts where a rule allows it'(at) {
    at.mine();
    const { id } = await makePersona(at, { autonomy_tier: 'act_auto' });
    const { id: taskId } = await at.submit('write log x', undefined, { with: { persona_id: id } });
    truth((await kindsOf(at, await at.ended(taskId))).includes('tool.completed'), 'the tool did not run');
  },
  async 'persona: with receipts disabled there is none, otherwise there is'(at) {
    const none = await makePersona(at, { receipt_policy: 'disabled' });
    const { id } = await at.submit('hello', undefined, { with: { persona_id: none.id } });
    equal((await at.ended(id)).receipt_id ?? null, null, 'receipt_id');
    equal((await at.ok<List<unknown>>('GET', `/v1/tasks/${id}/receipts`)).data, [], 'receipts');
  },
  async 'persona: one that is not there is 404'(at) {
    const { id } = await at.session();
    const body = { input: said('hello'), persona_id: 'persona_absent' };
    await at.refused('resource_not_found', 'POST', `/v1/sessions/${id}/tasks`, { body });
  },
  async 'persona: a session’s persona holds for its tasks'(at) {
    const { id } = await makePersona(at);
    const session = await at.session({ persona_id: id });
    equal((await at.done('hello', session.id)).persona_id, id, 'persona_id');
  },
  async 'quota: checked before the work, counted, and refused when it is used up'(at) {
    const quota = await makeQuota(at, { tasks: 2 });
    const { id } = await makePersona(at);
    await at.ok('PATCH', `/v1/personas/${id}`, { body: { quota_id: quota.id } });
    const session = await at.session({ persona_id: id });
    await at.done('hello', session.id);
    await at.done('hello', session.id);
    const path = `/v1/sessions/${session.id}/tasks`;
    const answer = await at.ask<{ error?: { code?: string } }>('POST', path, { body: { input: said('hello') } });
    among(answer.body?.error?.code, ['policy_violation', 'rate_limited'], `the third (${answer.status})`);
    equal((await at.ok<Quota>('GET', `/v1/quotas/${quota.id}`)).usage.tasks, 2, 'usage');
    equal((await at.ok<List<Task>>('GET', path)).data.length, 2, 'tasks');
  },
  async 'quota: many at once do not get past it'(at) {
    const quota = await makeQuota(at, { tasks: 3 });
    const { id } = await makePersona(at);
    await at.ok('PATCH', `/v1/personas/${id}`, { body: { quota_id: quota.id } });
    const session = await at.session({ persona_id: id });
    const asking = { body: { input: said('hello') } };
    const all = await Promise.all(
      Array.from({ length: 10 }, () => at.ask('POST', `/v1/sessions/${session.id}/tasks`, asking)),
    );
    equal(all.filter(({ status }) => status === 202).length, 3, 'accepted');
  },
  async 'quota: tool calls are counted too'(at) {
    const quota = await makeQuota(at, { tool_calls: 1 });
    const { id } = await makePersona(at);
    await at.ok('PATCH', `/v1/personas/${id}`, { body: { quota_id: quota.id } });
    const session = await at.session({ persona_id: id });
    const task = await at.done('read plan then read todo', session.id);
    const kinds = await kindsOf(at, task);
    equal(kinds.filter((kind) => kind === 'tool.completed').length, 1, 'calls that ran');
    truth(kinds.includes('tool.denied'), 'the second was not refused');
  },
  async 'policy: what a rule forbids does not happen, and says which rule'(at) {
    const own = at.mine();
    const before = (await own.effects()).length;
    const task = await at.done('delete plan');
    const denied = (await at.events(`/v1/tasks/${task.id}/events`)).find(({ event }) => event === 'tool.denied');
    equal(denied?.payload.rule_id, 'nothing-is-deleted', 'rule_id');
    equal((await own.effects()).length, before, 'effects');
  },
  async 'memory: withdrawn is gone from reads and lists, and its history stays'(at) {
    const session = await at.session();
    const body = { scope: 'session', owner_id: session.id, content: 'x', provenance: { source: 'check' } };
    const { id } = await at.made<Memory>('POST', '/v1/memories', { body });
    const gone = await at.ask('DELETE', `/v1/memories/${id}`);
    equal([gone.status, gone.text], [204, ''], 'the answer');
    await at.refused('resource_not_found', 'GET', `/v1/memories/${id}`);
    await at.refused('resource_not_found', 'DELETE', `/v1/memories/${id}`);
    const { text: shown } = await at.ask('GET', `/v1/memories?session_id=${session.id}`);
    absent(shown, id, 'it is still listed');
    const reported = await at.events(`/v1/events?workspace_id=${session.workspace_id}`);
    truth(
      reported.some(({ resource }) => resource.id === id),
      'its history is gone',
    );
  },
  async 'memory: filtered by workspace and session'(at) {
    const session = await at.session();
    const body = { scope: 'session', owner_id: session.id, content: 'x', provenance: {} };
    const { id } = await at.made<Memory>('POST', '/v1/memories', { body });
    for (const query of [`session_id=${session.id}`, `workspace_id=${session.workspace_id}&limit=200`]) {
      const { data } = await at.ok<List<Memory>>('GET', `/v1/memories?${query}`);
      truth(
        data.some((memory) => memory.id === id),
        query,
      );
    }
  },
  async 'memory: not part of the transcript'(at) {
    const session = await at.session();
    const body = { scope: 'session', owner_id: session.id, content: 'apart', provenance: {} };
    await at.made('POST', '/v1/memories', { body });
    equal(await at.messages(session.id), [], 'messages');
  },
  async 'vault: secrets that are sent along are not kept to be shown'(at) {
    const secret = unique('hunter2');
    const body = {
      provider: 'x',
      capabilities: ['read'],
      metadata: { access_token: secret, client_secret: secret, note: 'fine' },
      private_key: secret,
    };
    const made = await at.made<Vault>('POST', '/v1/vaults', { body });
    for (const path of [`/v1/vaults/${made.id}`, '/v1/vaults?limit=200', '/v1/events?limit=200']) {
      const { text: shown } = await at.ask('GET', path);
      absent(shown, secret, `${path} shows the secret`);
    }
    const { text: shown } = await at.ask('GET', `/v1/vaults/${made.id}`);
    for (const word of ['access_token', 'refresh_token', 'client_secret', 'private_key']) {
      absent(shown, word, `the vault shows ${word}`);
    }
  },
  async 'artifact: registered by reference, content is not ours to give'(at) {
    const { id } = await registered(at, { uri: 'harn://elsewhere/file', sha256: EMPTY });
    await at.refused('conflict', 'GET', `/v1/artifacts/${id}/content`);
  },
  async 'artifact: a prefixed hash is taken, and shown bare'(at) {
    equal((await registered(at, { sha256: `sha256:${EMPTY.toUpperCase().toLowerCase()}` })).sha256, EMPTY, 'sha256');
    equal((await registered(at, { sha256: EMPTY.toUpperCase() })).sha256, EMPTY, 'sha256 given in capitals');
  },
  async 'artifact: bytes uploaded come back, with their type and hash'(at) {
    const { id } = await registered(at, { sha256: hash });
    const headers = { 'content-type': 'application/octet-stream' };
    const made = await at.made<Artifact>('PUT', `/v1/artifacts/${id}/content`, { raw: bytes, headers });
    equal(made.sha256, hash, 'sha256');
    const answer = await at.open('GET', `/v1/artifacts/${id}/content`);
    equal(Buffer.from(await answer.arrayBuffer()).toString(), String(bytes), 'content');
    truth(answer.headers.get('content-type')?.startsWith('text/plain'), 'content-type');
    equal(answer.headers.get('x-content-type-options'), 'nosniff', 'x-content-type-options');
    truth(answer.headers.get('content-disposition')?.startsWith('attachment'), 'content-disposition');
  },
  async 'artifact: bytes that are not the registered ones are refused'(at) {
    const { id } = await registered(at, { sha256: EMPTY });
    const headers = { 'content-type': 'application/octet-stream' };
    const { status } = await at.ask('PUT', `/v1/artifacts/${id}/content`, { raw: bytes, headers });
    truth(status === 400 || status === 409 || status === 422, `status ${status}`);
  },
  ...each(
    [
      ['bytes=0-3', 206, '0123', 'bytes 0-3/10'],
      ['bytes=4-', 206, '456789', 'bytes 4-9/10'],
      ['bytes=-2', 206, '89', 'bytes 8-9/10'],
      ['bytes=20-30', 416, '', 'bytes */10'],
      ['nonsense', 200, '0123456789', null],
    ] as const,
    ([range]) => `artifact: Range: ${range}`,
    async ([range, status, content, shown], at) => {
      const { id } = await registered(at, { sha256: hash });
      await at.made('PUT', `/v1/artifacts/${id}/content`, {
        raw: bytes,
        headers: { 'content-type': 'application/octet-stream' },
      });
      const answer = await at.ask('GET', `/v1/artifacts/${id}/content`, { headers: { range } });
      equal([answer.status, answer.text, answer.headers.get('content-range')], [status, content, shown], 'the answer');
    },
  ),
  async 'artifact: what a task produced can be downloaded and has its hash'(at) {
    const task = await at.done('artifact');
    const { data } = await at.ok<List<Artifact>>('GET', `/v1/artifacts?task_id=${task.id}`);
    truth(data.length > 0, 'the task made no files');
    for (const file of data) {
      const answer = await at.open('GET', `/v1/artifacts/${file.id}/content`);
      const content = Buffer.from(await answer.arrayBuffer());
      equal(createHash('sha256').update(content).digest('hex'), file.sha256, `hash of ${file.id}`);
    }
  },
  async 'connector: a signed delivery becomes one task'(at) {
    const { id } = await connector(at);
    const first = await signedDelivery(at, id, 'd-1', { type: 'webhook.received', text: 'hello' });
    among(first.status, [200, 202], `the first (${first.text.slice(0, 200)})`);
    equal((await at.ended(first.body.id)).status, 'COMPLETED', 'the task');
    const second = await signedDelivery(at, id, 'd-1', { type: 'webhook.received', text: 'hello' });
    among(second.status, [200, 202], 'the second');
    equal(second.body.id, first.body.id, 'the task of the second');
    const { workspace_id } = await at.task(first.body.id);
    const reported = (await at.events(`/v1/events?workspace_id=${workspace_id}`)).map(({ event }) => event);
    for (const kind of ['connector.delivery_received', 'connector.delivery_deduped', 'connector.task_submitted']) {
      truth((reported as readonly string[]).includes(kind), `there is no ${kind}`);
    }
  },
  ...each(
    ['another secret', 'no signature', 'an absent connector'],
    (what) => `connector: a delivery with ${what} is 401 and makes nothing`,
    async (what, at) => {
      const made = await connector(at);
      const id = what === 'an absent connector' ? 'connector_absent' : made.id;
      const payload = { type: 'webhook.received', text: 'hello' };
      const answer =
        what === 'no signature'
          ? await at.ask<Task>('POST', `/v1/connectors/${id}/deliveries`, { body: payload, as: null })
          : await signedDelivery(at, id, 'd-1', payload, 'wrong');
      equal(answer.status, 401, 'status');
      equal((await at.ok<List<Task>>('GET', `/v1/tasks?session_id=${made.target_session_id}`)).data, [], 'tasks');
    },
  ),
  async 'card: everything the protocol asks of it'(at) {
    const card = await at.ok<Record<string, unknown>>('GET', '/v1/agent-card');
    for (const member of ['id', 'name', 'description', 'created_at', 'updated_at']) text(card[member], member);
    among(card.object, ['harn_agent_card', 'agent_card'], 'object');
    equal(card.protocol_version, at.revision.version, 'protocol_version');
    for (const skill of list<Skill>(card.skills, 'skills')) equal(skill.object, 'skill', 'a skill');
    const nested = card.a2a_card as Record<string, unknown>;
    for (const member of ['name', 'description', 'version']) text(nested?.[member], `a2a_card.${member}`);
    for (const member of ['supportedInterfaces', 'defaultInputModes', 'defaultOutputModes', 'skills']) {
      list(nested[member], `a2a_card.${member}`);
    }
    truth(list(nested.supportedInterfaces, 'supportedInterfaces').length > 0, 'no interface');
    equal(typeof nested.capabilities, 'object', 'a2a_card.capabilities');
  },
  async 'card: signed with a published key over everything but the signature'(at) {
    const { signature, ...card } = await at.ok<Record<string, Json>>('GET', '/v1/agent-card');
    const { algorithm, key_id, value } = (signature ?? at.lacking('the card is not signed')) as Record<string, string>;
    const { keys } = await at.ok<{ keys: Jwk[] }>('GET', '/.well-known/harn-receipt-keys.json');
    const signed = { keyId: key_id!, algorithm: algorithm!, signature: value!, text: canonical(card) };
    equal(signatureTrouble(signed, keys), undefined, 'trouble');
  },
  async 'card: every transport it names answers'(at) {
    const card = await at.ok<{ harn_interfaces: { transport: string; url: string }[] }>('GET', '/v1/agent-card');
    const named = card.harn_interfaces.map(({ transport }) => transport);
    for (const transport of ['rest', 'sse', 'websocket']) truth(named.includes(transport), `${transport} is not named`);
    for (const { transport, url } of card.harn_interfaces) {
      if (transport !== 'rest') continue;
      equal((await fetch(url)).status, 200, `${url}`);
    }
  },
  async 'health is public and says so'(at) {
    const health = await at.ok<{ ok: boolean; status: string; version: string }>('GET', '/health', {
      as: null,
      version: null,
    });
    equal(health.ok, true, 'ok');
    text(health.version, 'version');
  },
  async 'runtime and capabilities'(at) {
    const runtime = await at.made<{ object: string; protocol_version: string }>('GET', '/v1/runtime');
    equal([runtime.object, runtime.protocol_version], ['runtime', at.revision.version], 'runtime');
    const summary = await at.made<{ object: string; capabilities: { id: string }[] }>('GET', '/v1/capabilities');
    equal(summary.object, 'capability_summary', 'object');
    truth(
      summary.capabilities.every(({ id }) => typeof id === 'string'),
      'capabilities',
    );
  },
  async 'tools: listed with their schemas, readable one by one'(at) {
    const { data } = await at.made<List<{ id: string; object: string; input_schema: object }>>('GET', '/v1/tools');
    truth(data.length > 0, 'there are no tools');
    equal(await at.ok('GET', `/v1/tools/${data[0]?.id}`), data[0], 'the first');
    equal([data[0]?.object, typeof data[0]?.input_schema], ['tool', 'object'], 'its members');
  },
  async 'the description lists every operation'(at) {
    const { openapi, paths } = await at.ok<{ openapi: string; paths: Record<string, Record<string, unknown>> }>(
      'GET',
      '/openapi.json',
    );
    truth(openapi.startsWith('3.1'), `openapi ${openapi}`);
    const count = Object.values(paths).reduce(
      (sum, path) => sum + Object.keys(path).filter((m) => /^(get|post|put|patch|delete)$/.test(m)).length,
      0,
    );
    truth(count >= 59, `only ${count} operations`);
    for (const path of ['/v1/sessions/{session_id}/truncate', '/v1/permission-requests/{request_id}/respond']) {
      truth(path in paths, `${path} is missing`);
    }
  },
});
