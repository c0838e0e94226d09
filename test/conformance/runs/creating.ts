/** Who is let in, and what a new run may ask for: every code of the page that a request alone can bring about. */
import { randomUUID } from 'node:crypto';
import { equal, truth } from '../harn/harness/expect.ts';
import { type Asking, checksOf, isUuid, type RunsCheck, refused } from './target.ts';

const OPERATIONS: readonly (readonly [string, string])[] = [
  ['POST', '/v1/runs'],
  ['GET', '/v1/runs/run_none'],
  ['POST', '/v1/runs/run_none/cancel'],
  ['POST', '/v1/runs/run_none/retry'],
  ['POST', '/v1/runs/run_none/resume'],
  ['POST', '/v1/runs/run_none/signal'],
  ['GET', '/v1/runs/run_none/events'],
  ['GET', '/v1/runs/run_none/events/stream'],
  ['GET', '/v1/memory/export'],
  ['GET', '/v1/memory/items'],
  ['GET', '/v1/memory/items/none'],
  ['GET', '/v1/usage'],
];

const HEADERS: readonly (readonly [what: string, asking: Asking, code: string])[] = [
  ['another scheme', { as: null, headers: { authorization: 'Basic YTpi' } }, 'AUTH_HEADER_MALFORMED'],
  ['no pair', { as: 'only-one-half' }, 'AUTH_HEADER_MALFORMED'],
  ['no secret', { as: 'key_abc123xyz:' }, 'AUTH_HEADER_MALFORMED'],
  ['no key id', { as: ':secret' }, 'AUTH_HEADER_MALFORMED'],
  ['an unknown key', { as: 'key_abc123xyz:nothing' }, 'AUTH_KEY_INVALID'],
];

const tag = (path: unknown, more: object = {}) => ({ path, classification: 'pii', ...more });
const tagged = (...tags: object[]) => ({ input: { a: 1 }, metadata: {}, sensitivity_tags: tags });
const plain = (more: object) => ({ input: {}, metadata: {}, ...more });

const BODIES: readonly (readonly [what: string, code: string, body: unknown])[] = [
  ['no JSON', 'INPUT_PAYLOAD_INVALID', '{'],
  ['a list', 'INPUT_PAYLOAD_INVALID', []],
  ['no input', 'INPUT_PAYLOAD_INVALID', { metadata: {} }],
  ['no metadata', 'INPUT_PAYLOAD_INVALID', { input: {} }],
  ['an input that is a text', 'INPUT_PAYLOAD_INVALID', { input: 'x', metadata: {} }],
  ['a workspace that is a number', 'INPUT_PAYLOAD_INVALID', plain({ workspace_id: 1 })],
  ['attachments that are numbers', 'INPUT_PAYLOAD_INVALID', plain({ attachment_refs: [1] })],
  ['an unknown routing hint', 'INPUT_PAYLOAD_INVALID', plain({ routing_hint: 'x' })],
  ['an unknown run class', 'INPUT_PAYLOAD_INVALID', plain({ run_class: 'x' })],
  ['streaming that is a text', 'INPUT_PAYLOAD_INVALID', plain({ streaming: 'x' })],
  ['an unknown redaction', 'INPUT_PAYLOAD_INVALID', tagged(tag('$.input.a', { redaction: 'x' }))],
  ['more than 256 KB', 'INPUT_PAYLOAD_TOO_LARGE', { input: { t: 'x'.repeat(262_144) }, metadata: {} }],
  [
    '256 KB in two halves',
    'INPUT_PAYLOAD_TOO_LARGE',
    { input: { t: 'x'.repeat(131_072) }, metadata: { t: 'x'.repeat(131_072) } },
  ],
  ['an untagged password', 'INPUT_SENSITIVITY_TAG_REQUIRED', { input: { password: 'x' }, metadata: {} }],
  [
    'an untagged api key, deep down',
    'INPUT_SENSITIVITY_TAG_REQUIRED',
    { input: { a: [{ apiKey: 'x' }] }, metadata: {} },
  ],
  ['an untagged ssn in metadata', 'INPUT_SENSITIVITY_TAG_REQUIRED', { input: {}, metadata: { ssn: 'x' } }],
  ['a path from elsewhere', 'INPUT_SENSITIVITY_TAG_INVALID_PATH', tagged(tag('$.plan.a'))],
  ['a path with a wildcard', 'INPUT_SENSITIVITY_TAG_INVALID_PATH', tagged(tag('$.input.*'))],
  ['a path that is no text', 'INPUT_SENSITIVITY_TAG_INVALID_PATH', tagged(tag(7))],
  [
    'an unknown classification',
    'INPUT_SENSITIVITY_TAG_INVALID_CLASSIFICATION',
    tagged(tag('$.input.a', { classification: 'x' })),
  ],
  ['a path twice', 'INPUT_SENSITIVITY_TAG_DUPLICATE_PATH', tagged(tag('$.input.a'), tag('$.input.a'))],
  ['a plan without steps', 'INPUT_PLAN_INVALID', plain({ plan: { version: 2, steps: [] } })],
  ['a plan of another version', 'INPUT_PLAN_INVALID', plain({ plan: { version: 1, steps: [{}] } })],
];

const ACCEPTED: readonly (readonly [what: string, more: object])[] = [
  ['run class short', { run_class: 'short' }],
  ['run class long', { run_class: 'long' }],
  ['routing hint skip_planning', { routing_hint: 'skip_planning' }],
  ['routing hint require_planning', { routing_hint: 'require_planning' }],
  ['streaming', { streaming: true }],
  ['attachments', { attachment_refs: ['https://files.example/a.pdf'] }],
  ['a plan', { plan: { version: 2, steps: [{ title: 'look' }] } }],
  [
    'a tag that masks',
    { sensitivity_tags: [tag('$.input.user_query', { redaction: 'mask', retention_hint_days: 7 })] },
  ],
  ['a tag that drops', { sensitivity_tags: [tag('$.metadata', { redaction: 'drop', classification: 'health' })] }],
  ['a tag that meets nothing', { sensitivity_tags: [tag('$.input.not[3].there', { classification: 'financial' })] }],
];

export const creating: readonly RunsCheck[] = [
  ...checksOf(
    'without a key',
    Object.fromEntries(
      OPERATIONS.map(([method, path]) => [
        `${method} ${path}`,
        async (at) => refused(await at.call(method, path, { as: null }), 401, 'unauthorized', 'AUTH_HEADER_MISSING'),
      ]),
    ),
  ),
  ...checksOf(
    'authorization',
    Object.fromEntries([
      ...HEADERS.map(([what, asking, code]) => [
        what,
        async (at: Parameters<RunsCheck['run']>[0]) =>
          refused(await at.call('GET', '/v1/runs/run_none', asking), 401, 'unauthorized', code),
      ]),
    ]),
  ),
  ...checksOf('authorization', {
    async 'a revoked key'(at) {
      refused(
        await at.call('GET', '/v1/runs/run_none', { as: at.key('revoked') }),
        401,
        'unauthorized',
        'AUTH_KEY_REVOKED',
      );
    },
    async 'a key that may not do this'(at) {
      refused(await at.create({}, {}, { as: at.key('weak') }), 403, 'forbidden', 'AUTH_FORBIDDEN');
    },
    async 'work that policy forbids'(at) {
      refused(await at.create({ user_query: 'x' }, {}, { as: at.key('denied') }), 403, 'forbidden', 'POLICY_DENIED');
    },
    async 'the key comes before the body, and who is there before both'(at) {
      refused(await at.call('POST', '/v1/runs', { body: '{' }), 400, 'bad_request', 'IDEMPOTENCY_KEY_REQUIRED');
      refused(await at.call('POST', '/v1/runs', { body: '{', as: null }), 401, 'unauthorized', 'AUTH_HEADER_MISSING');
    },
  }),
  ...checksOf(
    'refused',
    Object.fromEntries(
      BODIES.map(([what, code, body]) => [
        what,
        async (at) => {
          const asking = { body, headers: { 'idempotency-key': randomUUID() } };
          refused(await at.call('POST', '/v1/runs', asking), 400, 'bad_request', code);
        },
      ]),
    ),
  ),
  ...checksOf(
    'accepted',
    Object.fromEntries(
      ACCEPTED.map(([what, more]) => [
        what,
        async (at) => {
          const { status, body } = await at.create({ user_query: at.word('hello') }, more);
          equal([status, body.status], [201, 'queued'], 'the answer');
          equal(body.run_class, (more as { run_class?: string }).run_class ?? 'default', 'run_class');
        },
      ]),
    ),
  ),
  ...checksOf('a new run', {
    async 'has every member and no other'(at) {
      const { status, body } = await at.create({ user_query: at.word('hello') });
      equal(status, 201, 'status');
      const { id, metadata, request_id, ...rest } = body;
      truth(typeof id === 'string' && id.startsWith('run_'), 'its id begins with run_');
      truth(isUuid(request_id), 'request_id is a uuid');
      equal(Object.keys(metadata).toSorted(), ['created_at', 'updated_at'], 'members of metadata');
      truth(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(metadata.created_at), 'times are UTC with milliseconds');
      equal(
        rest,
        {
          workspace_id: null,
          subject_id: null,
          status: 'queued',
          run_class: 'default',
          event_payload: { redacted: true, value: null },
          replayed: false,
        },
        'the rest',
      );
    },
    async 'echoes its labels'(at) {
      const { body } = await at.create(
        { user_query: at.word('hello') },
        { workspace_id: 'ws_engineering', subject_id: 'user_42' },
      );
      equal([body.workspace_id, body.subject_id], ['ws_engineering', 'user_42'], 'labels');
      const got = await at.call('GET', `/v1/runs/${body.id}`);
      equal([got.body.workspace_id, got.body.subject_id], ['ws_engineering', 'user_42'], 'labels, later');
      truth(!('replayed' in got.body), 'GET says nothing of replays');
    },
    async 'is found again by its key'(at) {
      const headers = { 'idempotency-key': randomUUID() };
      const first = await at.create({ user_query: at.word('hello'), b: 1 }, {}, { headers });
      const again = await at.create({ b: 1, user_query: at.word('hello') }, {}, { headers });
      equal([again.status, again.body.id, again.body.replayed], [200, first.body.id, true], 'the replay');
      truth(again.body.request_id !== first.body.request_id, 'every request has an id of its own');
    },
    async 'under the same key with another body is refused'(at) {
      const headers = { 'idempotency-key': randomUUID() };
      await at.create({ user_query: at.word('hello') }, {}, { headers });
      refused(await at.create({ other: 1 }, {}, { headers }), 409, 'conflict', 'IDEMPOTENCY_KEY_REUSED');
    },
    async 'under the same key of another customer is another run'(at) {
      const headers = { 'idempotency-key': randomUUID() };
      const first = await at.create({ user_query: at.word('hello') }, {}, { headers });
      const other = await at.create({ user_query: at.word('hello') }, {}, { headers, as: at.key('other') });
      equal(other.status, 201, 'status');
      truth(other.body.id !== first.body.id, 'it is another run');
    },
    async 'at the limit is accepted'(at) {
      // {"t":""} and {} are ten bytes.
      equal((await at.create({ t: 'x'.repeat(262_144 - 10) })).status, 201, 'status');
    },
    async 'keeps what was tagged to itself'(at) {
      const canary = `canary-${randomUUID()}`;
      const tags = [
        { path: '$.input.note', classification: 'proprietary' },
        { path: '$.metadata.owner', classification: 'pii', redaction: 'drop' },
      ];
      const input = { user_query: at.word('hello'), note: canary, api_token: canary };
      const { body } = await at.create(input, { metadata: { owner: canary }, sensitivity_tags: tags });
      await at.reaches(body.id, 'succeeded', 'failed');
      const { frames } = await at.stream(body.id);
      const all = JSON.stringify([
        body,
        await at.events(body.id),
        frames,
        (await at.call('GET', `/v1/runs/${body.id}`)).body,
      ]);
      truth(!all.includes(canary), 'nothing of it is told');
    },
  }),
];
