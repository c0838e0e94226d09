/** Every code that can be brought about from outside, in the whole envelope. */
import { equal, text, truth } from '../harness/expect.ts';
import { category, each } from '../harness/suite.ts';
import { said, unique } from '../harness/target.ts';

/** Path, body, and the member that is wrong with it. */
const BAD_BODIES: readonly (readonly [string, string, unknown, string])[] = [
  ['no body', '/v1/workspaces', undefined, ''],
  ['a name missing', '/v1/workspaces', { root: 'x:y' }, 'name'],
  ['a number for a name', '/v1/workspaces', { name: 7, root: 'x:y' }, 'name'],
  ['a list for an object', '/v1/workspaces', [], ''],
  ['a null for an object', '/v1/workspaces', null, ''],
  ['a text for an object', '/v1/workspaces', 'name', ''],
  ['no workspace', '/v1/sessions', {}, 'workspace_id'],
  ['an id that is none', '/v1/sessions', { workspace_id: '../..' }, 'workspace_id'],
  ['an unknown tier', '/v1/personas', persona({ autonomy_tier: 'total' }), 'autonomy_tier'],
  ['an unknown receipt policy', '/v1/personas', persona({ receipt_policy: 'never' }), 'receipt_policy'],
  ['an unknown artifact kind', '/v1/artifacts', { kind: 'poem', mime_type: 'a/b', visibility: 'public' }, 'kind'],
  ['a bad hash', '/v1/artifacts', { kind: 'log', mime_type: 'a/b', visibility: 'public', sha256: 'x' }, 'sha256'],
  ['an unknown memory scope', '/v1/memories', { scope: 'all', owner_id: 'x', content: 1, provenance: {} }, 'scope'],
  ['metadata that is a list', '/v1/workspaces', { name: 'n', root: 'x:y', metadata: [] }, 'metadata'],
];

function persona(more: object) {
  return {
    name: 'p',
    version: '1',
    entry_workflow: 'w',
    description: 'd',
    autonomy_tier: 'suggest',
    receipt_policy: 'optional',
    ...more,
  };
}

const KINDS = [
  ...['personas', 'workspaces', 'sessions', 'tasks', 'branches', 'messages', 'artifacts', 'events', 'receipts'],
  ...['memories', 'vaults', 'connectors', 'skills', 'outcomes', 'quotas', 'permission-requests', 'tools'],
];

export const errors = category('errors', {
  ...each(
    BAD_BODIES,
    ([what, path]) => `POST ${path} with ${what} is 400`,
    async ([, path, body, member], at) => {
      const error = await at.refused('invalid_request', 'POST', path, body === undefined ? {} : { body });
      if (member) truth((error.param ?? '').includes(member), `param is ${error.param}, not ${member}`);
    },
  ),
  ...each(
    ['{', '{"name":}', 'name=x', '{"name":"\\ud800","root":"x:y"}', '[[[', '\u0000'],
    (raw) => `the body ${JSON.stringify(raw)} is 400`,
    async (raw, at) => {
      await at.refused('invalid_request', 'POST', '/v1/workspaces', { raw });
    },
  ),
  async 'a body that says it is something else is 400'(at) {
    const headers = { 'content-type': 'text/xml' };
    await at.refused('invalid_request', 'POST', '/v1/workspaces', { raw: '{"name":"n","root":"x:y"}', headers });
  },
  async 'a body nested past reason is refused, not read'(at) {
    const raw = `{"name":"n","root":"x:y","metadata":${'{"a":'.repeat(5000)}1${'}'.repeat(5000)}}`;
    await at.refused('payload_too_large', 'POST', '/v1/workspaces', { raw });
  },
  async 'a body past the limit is 413'(at) {
    const raw = JSON.stringify({ name: 'n', root: 'x:y', metadata: { filling: 'x'.repeat(9 * 1024 * 1024) } });
    await at.refused('payload_too_large', 'POST', '/v1/workspaces', { raw });
  },
  async 'unknown members are no mistake'(at) {
    const body = { name: unique('n'), root: 'x:y', x_new: { any: ['thing'] } };
    equal((await at.ask('POST', '/v1/workspaces', { body })).status, 201, 'status');
  },
  ...each(
    KINDS,
    (kind) => `GET /v1/${kind}/{absent} is 404`,
    async (kind, at) => {
      await at.refused('resource_not_found', 'GET', `/v1/${kind}/${kind}_absent`);
    },
  ),
  ...each(
    ['/v1/nothing', '/v1/tasks/x/y/z', '/v1/sessions/session_absent/nothing'],
    (path) => `GET ${path} is 404 in the envelope`,
    async (path, at) => {
      await at.refused('resource_not_found', 'GET', path);
    },
  ),
  async 'a method nobody serves is refused in the envelope'(at) {
    const { status, body } = await at.ask<{ error?: { code?: string } }>('DELETE', '/v1/workspaces');
    truth(status === 404 || status === 405, `status ${status}`);
    text(body?.error?.code, 'error.code');
  },
  ...each(
    ['..%2f..%2fetc', '%00', 'a%20b', `${'x'.repeat(300)}`, 'täsk'],
    (id) => `the id ${id.slice(0, 20)} is 404 or 400, never 500`,
    async (id, at) => {
      const { status, body } = await at.ask<{ error?: { code?: string } }>('GET', `/v1/tasks/${id}`);
      truth(status === 404 || status === 400, `status ${status}`);
      text(body?.error?.code, 'error.code');
    },
  ),
  async 'writing to a closed session is 409 conflict'(at) {
    const { id } = await at.session();
    await at.ok('POST', `/v1/sessions/${id}/close`);
    await at.refused('conflict', 'POST', `/v1/sessions/${id}/messages`, { body: { message: said('late') } });
  },
  async 'an unknown event cursor is 410'(at) {
    const { id } = await at.done('hello');
    await at.refused('cursor_expired', 'GET', `/v1/tasks/${id}/events?after_event_id=evt_9999999999999999`);
  },
  async 'every request has an id of its own, also in the header'(at) {
    const ids = new Set<string>();
    for (let count = 0; count < 5; count += 1) {
      const answer = await at.ask<{ error: { request_id: string } }>('GET', '/v1/tasks/task_absent');
      equal(answer.headers.get('x-request-id'), answer.body.error.request_id, 'x-request-id');
      ids.add(answer.body.error.request_id);
    }
    equal(ids.size, 5, 'different ids');
  },
  async 'a request id that a client sends is not believed'(at) {
    const answer = await at.ask('GET', '/v1/tasks', { headers: { 'x-request-id': 'mine' } });
    truth(answer.headers.get('x-request-id') !== 'mine', 'the client named its request');
  },
  async 'an error says nothing about the inside'(at) {
    const { text: raw } = await at.ask('POST', '/v1/workspaces', { raw: '{' });
    for (const word of ['node_modules', '.ts:', '.js:', 'SyntaxError', ' at ']) {
      truth(!raw.includes(word), `the error contains ${JSON.stringify(word)}`);
    }
  },
  async 'errors are short enough to show'(at) {
    const { text: raw } = await at.ask('GET', `/v1/tasks/${'x'.repeat(190)}`);
    truth(raw.length <= 500, `${raw.length} characters`);
  },
});
