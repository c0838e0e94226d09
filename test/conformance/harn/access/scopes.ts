/** What a token may do: each operation needs its scope, and having every other one does not help. */
import { equal, truth } from '../harness/expect.ts';
import { category, each } from '../harness/suite.ts';
import { said, type Target, unique } from '../harness/target.ts';

const ALL = [
  ...['sessions', 'tasks', 'artifacts', 'personas', 'workspaces', 'memories', 'vaults', 'connectors', 'skills'],
  ...['quotas'],
].flatMap((family) => [`${family}:read`, `${family}:write`]);
const EVERY = [...ALL, 'events:read', 'receipts:read', 'approvals:write', 'metrics:read'];

/** Method, path, body, and the scope it takes. Paths may name what does not exist: scopes come first. */
const OPERATIONS: readonly (readonly [string, string, unknown, string])[] = [
  ['GET', '/v1/sessions', undefined, 'sessions:read'],
  ['GET', '/v1/messages/message_absent', undefined, 'sessions:read'],
  ['POST', '/v1/sessions/session_absent/messages', { message: said('x') }, 'sessions:write'],
  ['POST', '/v1/sessions/session_absent/close', undefined, 'sessions:write'],
  ['POST', '/v1/sessions/session_absent/fork', {}, 'sessions:write'],
  ['POST', '/v1/sessions/session_absent/truncate', { keep_first: 0 }, 'sessions:write'],
  ['GET', '/v1/tasks', undefined, 'tasks:read'],
  ['GET', '/v1/outcomes', undefined, 'tasks:read'],
  ['POST', '/v1/sessions/session_absent/tasks', { input: said('x') }, 'tasks:write'],
  ['POST', '/v1/tasks/task_absent/cancel', {}, 'tasks:write'],
  ['POST', '/v1/tasks/task_absent/replay', {}, 'tasks:write'],
  ['POST', '/v1/tasks/task_absent/messages', { kind: 'input', message: said('x') }, 'tasks:write'],
  ['GET', '/v1/events', undefined, 'events:read'],
  ['GET', '/v1/events/stream', undefined, 'events:read'],
  ['GET', '/v1/tasks/task_absent/stream', undefined, 'events:read'],
  ['GET', '/v1/artifacts', undefined, 'artifacts:read'],
  ['GET', '/v1/artifacts/artifact_absent/content', undefined, 'artifacts:read'],
  ['POST', '/v1/artifacts', { kind: 'log', mime_type: 'text/plain', visibility: 'public' }, 'artifacts:write'],
  ['GET', '/v1/receipts/receipt_absent', undefined, 'receipts:read'],
  ['POST', '/v1/receipts/receipt_absent/verify', {}, 'receipts:read'],
  ['GET', '/v1/memories', undefined, 'memories:read'],
  ['DELETE', '/v1/memories/memory_absent', undefined, 'memories:write'],
  ['GET', '/v1/vaults', undefined, 'vaults:read'],
  ['POST', '/v1/vaults', { provider: 'x', capabilities: [] }, 'vaults:write'],
  ['GET', '/v1/quotas', undefined, 'quotas:read'],
  ['POST', '/v1/permission-requests/ask_absent/respond', { approved: true }, 'approvals:write'],
];

async function keyWith(at: Target, scopes: readonly string[]): Promise<string> {
  return (await at.mine().issue({ id: unique('holder'), scopes })).key;
}

export const scopes = category('scopes', {
  ...each(
    OPERATIONS,
    ([method, path, , scope]) => `${method} ${path} needs ${scope} and nothing else will do`,
    async ([method, path, body, scope], at) => {
      const asking = body === undefined ? {} : { body };
      const others = await keyWith(
        at,
        EVERY.filter((held) => held !== scope),
      );
      await at.refused('permission_denied', method, path, { ...asking, as: others });
      const only = { ...asking, as: await keyWith(at, [scope]) };
      const abort = new AbortController();
      const answer = await at.open(method, path, { ...only, signal: abort.signal });
      abort.abort();
      truth(answer.status !== 403, `${scope} alone is refused with ${answer.status}`);
    },
  ),
  async 'a key without scopes can do nothing'(at) {
    const as = await keyWith(at, []);
    for (const path of ['/v1/tasks', '/v1/sessions', '/v1/events', '/v1/workspaces']) {
      await at.refused('permission_denied', 'GET', path, { as });
    }
    equal((await at.ask('GET', '/v1', { as })).status, 200, 'what is public stays public');
  },
  async 'a refusal for want of scope comes before whether the thing exists'(at) {
    const as = await keyWith(at, ['tasks:read']);
    const { id } = await at.session();
    await at.refused('permission_denied', 'GET', `/v1/sessions/${id}`, { as });
    await at.refused('permission_denied', 'GET', '/v1/sessions/session_absent', { as });
  },
});
