/** What only 1.0 has, and what is said round the operations: lists, envelopes, versions, cards, extensions. */
import { equal, truth } from '../harn/harness/expect.ts';
import { type A2aCheck, message, refused } from './checks.ts';
import type { Body, Target, Way } from './target.ts';

const RPC: Way = { binding: 'JSONRPC', version: '1.0' };
const REST: Way = { binding: 'HTTP+JSON', version: '1.0' };
const CARD = '/.well-known/agent-card.json';
const ids = (list: Body) => list.tasks.map(({ id }: Body) => id);

async function three(at: Target, contextId: string): Promise<string[]> {
  const made: string[] = [];
  for (const prefix of ['tck-complete-task', 'tck-fail-task', 'tck-artifact-text']) {
    const { result } = await at.call(RPC, 'send', message(at, prefix, { contextId }));
    made.unshift(result.task.id);
  }
  return made;
}

/** On every binding of 1.0. */
const EACH: Readonly<Record<string, (at: Target, way: Way) => Promise<void>>> = {
  'list: a context, all four members': async (at, way) => {
    const contextId = at.fresh('list');
    const made = await three(at, contextId);
    const { result } = await at.call(way, 'list', { contextId });
    equal([[...ids(result)].sort(), result.totalSize, result.nextPageToken], [[...made].sort(), 3, ''], 'the list');
    equal(result.pageSize, 50, 'the usual size of a page');
  },
  'list: pages join without gap or repeat': async (at, way) => {
    const contextId = at.fresh('list');
    const made = await three(at, contextId);
    const first = (await at.call(way, 'list', { contextId, pageSize: 2 })).result;
    const second = (await at.call(way, 'list', { contextId, pageSize: 2, pageToken: first.nextPageToken })).result;
    equal([...ids(first), ...ids(second)].sort(), [...made].sort(), 'both pages');
    equal([second.nextPageToken, first.totalSize], ['', 3], 'the end');
  },
  'list: by state, and newest first': async (at, way) => {
    const contextId = at.fresh('list');
    const made = await three(at, contextId);
    equal(
      ids((await at.call(way, 'list', { contextId, status: 'TASK_STATE_FAILED' })).result),
      [made[1]],
      'failed ones',
    );
    const times = (await at.call(way, 'list', { contextId })).result.tasks.map(({ status }: Body) => status.timestamp);
    equal(times, [...times].sort().reverse(), 'order');
  },
  'list: artifacts and history on request': async (at, way) => {
    const contextId = at.fresh('list');
    await three(at, contextId);
    const bare = (await at.call(way, 'list', { contextId })).result.tasks[0];
    equal([bare.artifacts, bare.history], [undefined, undefined], 'neither');
    const full = (await at.call(way, 'list', { contextId, includeArtifacts: true, historyLength: 1 })).result.tasks[0];
    equal([Array.isArray(full.artifacts), full.history.length], [true, 1], 'both');
  },
  'list: since a time, that time included': async (at, way) => {
    const contextId = at.fresh('list');
    await three(at, contextId);
    const [newest] = (await at.call(way, 'list', { contextId })).result.tasks;
    const since = { contextId, statusTimestampAfter: newest.status.timestamp };
    truth(ids((await at.call(way, 'list', since)).result).includes(newest.id), 'the newest is there');
  },
  'list: what is no page is refused': async (at, way) => {
    for (const bad of [{ pageSize: 0 }, { pageSize: 101 }, { pageToken: 'nonsense' }, { status: 'TASK_STATE_NONE' }]) {
      refused(way, await at.call(way, 'list', bad), 'INVALID_PARAMS');
    }
  },
  'extension: a cursor resumes without loss': async (at, way) => {
    const uri = 'urn:tollbridge:a2a:resume:v1';
    const all = await at.stream(way, 'stream', message(at, 'tck-stream-artifact-chunked'), { 'a2a-extensions': uri });
    const cursor = all[1].statusUpdate.metadata[uri].cursor;
    const rest = await at.stream(
      way,
      'subscribe',
      { id: all[0].task.id },
      { 'a2a-extensions': uri, 'last-event-id': cursor },
    );
    equal(rest.slice(1), all.slice(2), 'the rest');
  },
};

const envelope = (at: Target, body: string, headers = {}) =>
  at.raw('POST', '', body, { 'a2a-version': '1.0', ...headers }).then(async (answer) => (await answer.json()) as Body);

const ROUND: Readonly<Record<string, (at: Target) => Promise<void>>> = {
  'envelope: what is not JSON': async (at) => equal((await envelope(at, '{"a":')).error.code, -32700, 'code'),
  'envelope: a batch': async (at) => equal((await envelope(at, '[]')).error.code, -32600, 'code'),
  'envelope: no jsonrpc': async (at) =>
    equal((await envelope(at, '{"id":1,"method":"GetTask"}')).error.code, -32600, 'code'),
  'envelope: no method': async (at) =>
    equal((await envelope(at, '{"jsonrpc":"2.0","id":1}')).error.code, -32600, 'code'),
  'envelope: an unknown method': async (at) =>
    equal((await envelope(at, '{"jsonrpc":"2.0","id":1,"method":"Nope","params":{}}')).error.code, -32601, 'code'),
  'envelope: the id comes back as it went': async (at) => {
    for (const id of ['text', 7]) {
      const body = JSON.stringify({ jsonrpc: '2.0', id, method: 'GetTask', params: { id: 'x' } });
      equal((await envelope(at, body)).id, id, 'id');
    }
  },
  'rest: an unknown address': async (at) => {
    equal((await at.raw('GET', '/nothing', undefined, { 'a2a-version': '1.0' })).status, 404, 'status');
  },
  'rest: another media type': async (at) => {
    const answer = await at.raw('POST', '/message:send', 'x', { 'a2a-version': '1.0', 'content-type': 'text/plain' });
    equal(
      [answer.status, ((await answer.json()) as Body).error.details[0].reason],
      [400, 'CONTENT_TYPE_NOT_SUPPORTED'],
      'refused',
    );
  },
  'rest: application/a2a+json goes in and comes out': async (at) => {
    const type = 'application/a2a+json';
    const body = JSON.stringify(message(at, 'tck-complete-task'));
    const answer = await at.raw('POST', '/message:send', body, { 'a2a-version': '1.0', 'content-type': type });
    equal([answer.status, answer.headers.get('content-type')], [200, type], 'answer');
  },
  'rest: subscribe may be a GET': async (at) => {
    const answer = await at.raw('GET', '/tasks/task_nobody:subscribe', undefined, { 'a2a-version': '1.0' });
    equal(answer.status, 404, 'status');
  },
  'version: patch numbers do not matter': async (at) => {
    const answer = await at.raw('GET', '/tasks/task_nobody', undefined, { 'a2a-version': '1.0.1' });
    equal(((await answer.json()) as Body).error.details[0].reason, 'TASK_NOT_FOUND', 'reason');
  },
  'version: it may stand in the query': async (at) => {
    const answer = await at.raw('GET', '/tasks/task_nobody?A2A-Version=1.0');
    equal(((await answer.json()) as Body).error.details[0].reason, 'TASK_NOT_FOUND', 'reason');
  },
  'version: one that is not served, over HTTP+JSON': async (at) => {
    const answer = await at.raw('GET', '/tasks/x', undefined, { 'a2a-version': '99.0' });
    equal(
      [answer.status, ((await answer.json()) as Body).error.details[0].reason],
      [400, 'VERSION_NOT_SUPPORTED'],
      'refused',
    );
  },
  'version: one that is not served, over JSON-RPC': async (at) => {
    const body = '{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x"}}';
    equal((await envelope(at, body, { 'a2a-version': '99.0' })).error.code, -32009, 'code');
  },
  'card: is public, and names this base': async (at) => {
    const answer = await at.raw('GET', CARD, undefined, { 'a2a-version': '1.0', authorization: '' });
    const card = (await answer.json()) as Body;
    equal(answer.status, 200, 'status');
    truth(
      card.supportedInterfaces.every(({ protocolVersion }: Body) => protocolVersion),
      'every interface has a version',
    );
    for (const member of [
      'name',
      'description',
      'version',
      'capabilities',
      'defaultInputModes',
      'defaultOutputModes',
      'skills',
    ]) {
      truth(card[member] !== undefined, `the card has ${member}`);
    }
  },
  'card: is not sent twice': async (at) => {
    const first = await at.raw('GET', CARD, undefined, { 'a2a-version': '1.0' });
    const etag = first.headers.get('etag');
    truth(etag && first.headers.get('cache-control'), 'an etag and how long it holds');
    const again = await at.raw('GET', CARD, undefined, { 'a2a-version': '1.0', 'if-none-match': etag });
    equal(again.status, 304, 'status');
  },
  'card: a signature, when there is one, names its key': async (at) => {
    const card = (await (await at.raw('GET', CARD, undefined, { 'a2a-version': '1.0' })).json()) as Body;
    for (const { protected: header, signature } of card.signatures ?? []) {
      const { alg, kid } = JSON.parse(Buffer.from(header, 'base64url').toString());
      truth(alg && kid && signature, 'alg, kid and a signature');
    }
  },
  'card: readers of 0.3 find theirs': async (at) => {
    const card = (await (await at.raw('GET', CARD)).json()) as Body;
    truth(card.url && card.preferredTransport && String(card.protocolVersion).startsWith('0.3'), 'the older members');
  },
  'extension: an unknown one is ignored': async (at) => {
    const came = await at.call(RPC, 'send', message(at, 'tck-complete-task'), {
      'a2a-extensions': 'urn:nobody:knows:this',
    });
    equal([came.status, came.headers.get('a2a-extensions')], [200, null], 'ignored');
  },
  'bindings: both of HTTP say the same about a task': async (at) => {
    const { result } = await at.call(RPC, 'send', message(at, 'tck-artifact-file'));
    const [one, two] = [
      await at.call(RPC, 'get', { id: result.task.id }),
      await at.call(REST, 'get', { id: result.task.id }),
    ];
    equal(one.result, two.result, 'the task');
  },
};

const GRPC: Way = { binding: 'GRPC', version: '1.0' };

const GRPC_ONLY: Readonly<Record<string, (at: Target) => Promise<void>>> = {
  'bindings: gRPC says the same about a task as the others': async (at) => {
    const { result } = await at.call(RPC, 'send', message(at, 'tck-artifact-file'));
    const [one, two] = [
      await at.call(RPC, 'get', { id: result.task.id }),
      await at.call(GRPC, 'get', { id: result.task.id }),
    ];
    equal(two.result, one.result, 'the task');
  },
  'bindings: a stream over gRPC says what one over JSON-RPC says': async (at) => {
    const shape = (said: Body[]) =>
      said.map(({ task, statusUpdate, artifactUpdate }) => [
        (task ?? statusUpdate)?.status.state,
        artifactUpdate?.artifact.parts[0].text,
        artifactUpdate?.append ?? false,
        artifactUpdate?.lastChunk ?? false,
      ]);
    const prefix = 'tck-stream-artifact-chunked';
    const [one, two] = [
      await at.stream(RPC, 'stream', message(at, prefix)),
      await at.stream(GRPC, 'stream', message(at, prefix)),
    ];
    equal(shape(two), shape(one), 'the stream');
  },
  'version: patch numbers do not matter, over gRPC either': async (at) => {
    const came = await at.call(GRPC, 'get', { id: 'task_nobody' }, { 'a2a-version': '1.0.1' });
    equal(came.error?.reason, 'TASK_NOT_FOUND', 'reason');
  },
  'version: one that is not served, over gRPC': async (at) => {
    const came = await at.call(GRPC, 'get', { id: 'x' }, { 'a2a-version': '99.0' });
    equal([came.status, came.error?.reason], [9, 'VERSION_NOT_SUPPORTED'], 'refused');
  },
};

export function newerChecks(ways: readonly Way[]): readonly A2aCheck[] {
  const current = ways.filter(({ version }) => version === '1.0');
  return [
    ...current.flatMap((way) =>
      Object.entries(EACH).map(([name, run]) => ({
        name: `${way.binding} 1.0, ${name}`,
        run: (at: Target) => run(at, way),
      })),
    ),
    ...Object.entries(ROUND).map(([name, run]) => ({ name, run })),
    ...(current.some(({ binding }) => binding === 'GRPC')
      ? Object.entries(GRPC_ONLY).map(([name, run]) => ({ name, run }))
      : []),
  ];
}
