/** What must never be shown: secrets in what is said, keys in what is logged, and parts that are not for everyone. */
import type { Message, ReceiptResource } from '../../../../src/model/resources.ts';
import { absent, equal, truth } from '../harness/expect.ts';
import { category, each } from '../harness/suite.ts';
import { said, type Target } from '../harness/target.ts';

/** Things that look like what they are, as people paste them. None of them is real. */
const SECRETS: readonly (readonly [string, string])[] = [
  ['an AWS key id', `AKIA${'IOSFODNN7EXAMPLE'}`],
  ['a GitHub token', `ghp_${'a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8'}`],
  ['a bearer header', `Authorization: Bearer ${'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJlc2lnbmF0dXJl'}`],
  [
    'a private key',
    `-----BEGIN ${'PRIVATE KEY'}-----\nMC4CAQAwBQYDK2VwBCIEIAAAAAAAAAAAAAAAAAAAAAAA\n-----END PRIVATE KEY-----`,
  ],
];

/** Everything a reader can see of a task, as one text. */
async function everything(
  at: Target,
  task: { id: string; session_id: string; receipt_id?: string | null },
): Promise<string> {
  const paths = [
    `/v1/tasks/${task.id}`,
    `/v1/tasks/${task.id}/events?limit=200`,
    `/v1/sessions/${task.session_id}/messages?limit=200`,
    `/v1/sessions/${task.session_id}/events?limit=200`,
    `/v1/outcomes?task_id=${task.id}`,
    `/v1/receipts/${task.receipt_id}`,
    `/v1/artifacts?task_id=${task.id}`,
  ];
  return (await Promise.all(paths.map(async (path) => (await at.ask('GET', path)).text))).join('\n');
}

export const privacy = category('privacy', {
  ...each(
    SECRETS,
    ([what]) => `${what} in a prompt is in no event, message or receipt`,
    async ([, secret], at) => {
      const task = await at.done(`hello ${secret} there`);
      const shown = await everything(at, task);
      const core = secret.split(/\s+/).at(secret.includes('BEGIN') ? 3 : -1) ?? secret;
      absent(shown, core, 'the secret is shown');
    },
  ),
  async 'the token a request came with is in nothing that is written down'(at) {
    const task = await at.done('hello then read plan');
    absent(await everything(at, task), at.key ?? 'no key', 'the token is shown');
  },
  async 'what is for receipts only is kept out of what everyone reads'(at) {
    const { id } = await at.session();
    const words = 'only for the receipt';
    const parts = [
      { type: 'text', text: 'for all', visibility: 'public' },
      { type: 'text', text: words, visibility: 'receipt_only' },
    ];
    await at.ok<Message>('POST', `/v1/sessions/${id}/messages`, { body: { message: { role: 'user', parts } } });
    const messages = await at.ask('GET', `/v1/sessions/${id}/messages`);
    const events = await at.ask('GET', `/v1/sessions/${id}/events`);
    truth(messages.text.includes('for all'), 'the public part is gone');
    absent(messages.text, words, 'the messages show it');
    absent(events.text, words, 'the events show it');
  },
  async 'a receipt shows hashes of what was said, not the words'(at) {
    const words = 'a sentence nobody else would write';
    const task = await at.done(`hello ${words}`);
    const receipt = await at.ok<ReceiptResource>('GET', `/v1/receipts/${task.receipt_id}`);
    absent(JSON.stringify(receipt), words, 'the receipt repeats the prompt');
  },
  async 'no event tells how a model thought'(at) {
    const { id } = await at.done('hello');
    const shown = await at.ask('GET', `/v1/tasks/${id}/events?limit=200`);
    for (const word of ['chain_of_thought', '"thinking"', '"reasoning"']) absent(shown.text, word, `there is ${word}`);
  },
  async 'answers are not kept by caches'(at) {
    const { headers } = await at.ask('GET', '/v1/tasks');
    equal(headers.get('cache-control'), 'no-store', 'cache-control');
  },
  ...each(
    ['https://evil.example', 'null', 'http://localhost.evil.example'],
    (origin) => `a page of ${origin} is refused`,
    async (origin, at) => {
      equal((await at.ask('GET', '/v1/tasks', { headers: { origin } })).status, 403, 'status');
      const said_ = { body: { name: 'n', root: 'x:y' }, headers: { origin } };
      equal((await at.ask('POST', '/v1/workspaces', said_)).status, 403, 'status of a write');
    },
  ),
  async 'files meant for receipts only need the receipts scope'(at) {
    const own = at.mine();
    const workspace = await at.workspace();
    const bytes = Buffer.from('internal');
    const body = { kind: 'log', mime_type: 'text/plain', visibility: 'receipt_only', workspace_id: workspace.id };
    const { id } = await at.made<{ id: string }>('POST', '/v1/artifacts', { body });
    await at.made('PUT', `/v1/artifacts/${id}/content`, {
      raw: bytes,
      headers: { 'content-type': 'application/octet-stream' },
    });
    const { key: as } = await own.issue({ id: 'reader', scopes: ['artifacts:read', 'others:read'] });
    await at.refused('permission_denied', 'GET', `/v1/artifacts/${id}/content`, { as });
    const { key: auditor } = await own.issue({
      id: 'auditor',
      scopes: ['artifacts:read', 'receipts:read', 'others:read'],
    });
    equal((await at.ask('GET', `/v1/artifacts/${id}/content`, { as: auditor })).status, 200, 'with both scopes');
  },
  async 'a message from a user is shown as theirs'(at) {
    const { id } = await at.session();
    const made = await at.ok<Message>('POST', `/v1/sessions/${id}/messages`, { body: { message: said('mine') } });
    equal(made.role, 'user', 'role');
  },
});
