/** What must hold for every operation, on every binding, in every revision that is served. One line names one thing. */
import { equal, truth } from '../harn/harness/expect.ts';
import { type Body, type Came, nameOf, type Target, type Way } from './target.ts';

export interface A2aCheck {
  readonly name: string;
  run(at: Target): Promise<void>;
}
type Run = (at: Target, way: Way) => Promise<void>;

export function message(at: Target, prefix: string, more: object = {}): Body {
  return { message: { messageId: at.fresh(prefix), role: 'ROLE_USER', parts: [{ text: 'go' }], ...more } };
}

/** `grpc`: 3 is INVALID_ARGUMENT, 5 NOT_FOUND, 9 FAILED_PRECONDITION. */
const CODES: Readonly<Record<string, { rpc: number; http: number; grpc: number }>> = {
  TASK_NOT_FOUND: { rpc: -32001, http: 404, grpc: 5 },
  TASK_NOT_CANCELABLE: { rpc: -32002, http: 400, grpc: 9 },
  UNSUPPORTED_OPERATION: { rpc: -32004, http: 400, grpc: 9 },
  INVALID_PARAMS: { rpc: -32602, http: 400, grpc: 3 },
};

/** Refused for this reason, in the words of the binding. */
export function refused({ binding, version }: Way, came: Came, reason: string): void {
  truth(came.error, `expected ${reason}, got ${JSON.stringify(came.raw)?.slice(0, 200)}`);
  const { rpc, http, grpc } = CODES[reason]!;
  if (binding === 'GRPC') equal(came.status, grpc, reason);
  else if (binding === 'JSONRPC') equal([came.status, came.error.code], [200, rpc], reason);
  else equal(came.status, http, reason);
  if (version === '1.0') equal(came.error.reason, reason, 'the reason in the details');
}

async function begun(at: Target, way: Way, prefix: string, more: object = {}, config: object = {}): Promise<Body> {
  const came = await at.call(way, 'send', { ...message(at, prefix, more), configuration: config });
  truth(came.result?.task, `send answered ${JSON.stringify(came.raw)?.slice(0, 300)}`);
  return came.result.task;
}

const stateOf = (task: Body) => task.status.state.replace('TASK_STATE_', '');
/** The first part of the first artifact, wherever the revision keeps it. */
const firstPart = (task: Body) => task.artifacts?.[0]?.parts?.[0];
const textOf = (part: Body) => part?.text;
const eventOf = (said: Body) => Object.keys(said)[0];
const PUBLIC_HOOK = 'https://93.184.216.34/hook';

/** Data parts travel three ways: 1.0, 0.3 JSON-RPC, 0.3 HTTP. */
function dataOf(parts: readonly Body[]): Body {
  const part = parts.find(({ data }) => data !== undefined);
  return part?.data?.data ?? part?.data;
}
function partsOf(message: Body): Body[] {
  return message.parts ?? message.content;
}

/** 0.3 in protocol buffers: there the SDK hands on neither the name of a file nor, in a send, how much history is wanted. */
const inOlderBuffers = ({ version, binding }: Way) => version === '0.3' && binding !== 'JSONRPC';

const RUNS: Readonly<Record<string, Run>> = {
  'send: a blocking send answers with the ended task': async (at, way) => {
    const task = await begun(at, way, 'tck-complete-task');
    equal(stateOf(task), 'COMPLETED', 'state');
    truth(task.id && task.contextId, 'it has an id and a context');
  },
  'send: the last status may say something': async (at, way) => {
    const { message: said } = (await begun(at, way, 'tck-complete-task')).status;
    equal(textOf(partsOf(said)[0]), 'Hello from TCK', 'status message');
  },
  'send: who does not wait gets the task as it stands': async (at, way) => {
    const task = await begun(at, way, 'tck-work', {}, { returnImmediately: true });
    truth(['SUBMITTED', 'WORKING'].includes(stateOf(task)), `state ${stateOf(task)}`);
    await at.call(way, 'cancel', { id: task.id });
  },
  'send: text comes back as an artifact': async (at, way) => {
    equal(textOf(firstPart(await begun(at, way, 'tck-artifact-text'))), 'Generated text content', 'text');
  },
  'send: a file comes back with its name, its type and its bytes': async (at, way) => {
    const part = firstPart(await begun(at, way, 'tck-artifact-file'));
    const file = part.file ?? part;
    if (!inOlderBuffers(way)) equal(file.filename ?? file.name, 'output.txt', 'name');
    equal(file.mediaType ?? file.mimeType, 'text/plain', 'type');
    const bytes = file.raw ?? file.bytes ?? file.fileWithBytes;
    equal(Buffer.from(bytes, 'base64').toString(), 'Generated file content', 'bytes');
  },
  'send: a link comes back as a link': async (at, way) => {
    const part = firstPart(await begun(at, way, 'tck-artifact-file-url'));
    const file = part.file ?? part;
    equal(file.url ?? file.uri ?? file.fileWithUri, 'https://example.com/output.txt', 'link');
  },
  'send: data comes back as data': async (at, way) => {
    const task = await begun(at, way, 'tck-artifact-data');
    equal(dataOf(task.artifacts[0].parts), { key: 'value', count: 42 }, 'data');
  },
  'send: an answer without work is a message': async (at, way) => {
    const { result } = await at.call(way, 'send', message(at, 'tck-message-response'));
    equal(textOf(partsOf(result.message)[0]), 'Direct message response', 'message');
  },
  'send: what the agent refuses is REJECTED': async (at, way) => {
    equal(stateOf(await begun(at, way, 'tck-reject-task')), 'REJECTED', 'state');
  },
  'send: what it fails at is FAILED': async (at, way) => {
    equal(stateOf(await begun(at, way, 'tck-fail-task')), 'FAILED', 'state');
  },
  'send: a question is INPUT_REQUIRED, and the next message answers it': async (at, way) => {
    const task = await begun(at, way, 'tck-input-required');
    equal(stateOf(task), 'INPUT_REQUIRED', 'state');
    const after = await begun(at, way, 'answer', { taskId: task.id, parts: [{ text: 'tea' }] });
    equal([after.id, stateOf(after)], [task.id, 'COMPLETED'], 'the same task, ended');
    equal(textOf(firstPart(after)), 'Thank you for "tea".', 'what came of the answer');
  },
  'send: an approval is INPUT_REQUIRED to a peer that may give it, says what it is about, and takes a data part':
    async (at, way) => {
      const task = await begun(at, way, 'tck-approval');
      equal(stateOf(task), 'INPUT_REQUIRED', 'state');
      const asked = dataOf(partsOf(task.status.message));
      equal(
        [asked.kind, asked.action.tool, asked.action.arguments],
        ['approval', 'publish', { page: 1 }],
        'what is asked',
      );
      const yes = { askId: asked.askId, approved: true };
      const after = await begun(at, way, 'answer', { taskId: task.id, parts: [{ data: yes }] });
      equal(textOf(firstPart(after)), 'Published.', 'what came of it');
    },
  'send: a plain yes approves nothing': async (at, way) => {
    const task = await begun(at, way, 'tck-approval');
    const came = await at.call(way, 'send', message(at, 'answer', { taskId: task.id, parts: [{ text: 'yes' }] }));
    refused(way, came, 'INVALID_PARAMS');
    equal(stateOf((await at.call(way, 'get', { id: task.id })).result), 'INPUT_REQUIRED', 'state');
  },
  'send: as much history as is wanted': async (at, way) => {
    const { history } = await begun(at, way, 'tck-artifact-text', {}, { historyLength: 1 });
    equal(history.length, 1, 'messages');
  },
  'send: a context goes on': async (at, way) => {
    const first = await begun(at, way, 'tck-complete-task');
    const second = await begun(at, way, 'tck-complete-task', { contextId: first.contextId });
    equal(second.contextId, first.contextId, 'context');
    truth(second.id !== first.id, 'another task');
  },
  'send: a context the peer made up is kept': async (at, way) => {
    const contextId = at.fresh('context');
    equal((await begun(at, way, 'tck-complete-task', { contextId })).contextId, contextId, 'context');
  },
  'send: the context of a task cannot be swapped': async (at, way) => {
    const { id } = await begun(at, way, 'tck-input-required');
    const came = await at.call(way, 'send', message(at, 'x', { taskId: id, contextId: 'another' }));
    refused(way, came, 'INVALID_PARAMS');
  },
  'send: a task nobody has': async (at, way) => {
    refused(way, await at.call(way, 'send', message(at, 'x', { taskId: 'task_nobody' })), 'TASK_NOT_FOUND');
  },
  'send: an ended task takes no more': async (at, way) => {
    const { id } = await begun(at, way, 'tck-complete-task');
    refused(way, await at.call(way, 'send', message(at, 'x', { taskId: id })), 'UNSUPPORTED_OPERATION');
  },
  'send: a message without an id': async (at, way) => {
    refused(way, await at.call(way, 'send', message(at, 'x', { messageId: '' })), 'INVALID_PARAMS');
  },
  'send: a message without parts': async (at, way) => {
    refused(way, await at.call(way, 'send', message(at, 'x', { parts: [] })), 'INVALID_PARAMS');
  },
  'send: the same message id twice is two tasks': async (at, way) => {
    const input = message(at, 'tck-complete-task');
    const [one, two] = [await at.call(way, 'send', input), await at.call(way, 'send', input)];
    truth(one.result.task.id !== two.result.task.id, 'two tasks');
  },
  'send: an idempotency key makes it one': async (at, way) => {
    const input = message(at, 'tck-complete-task');
    const key = { 'idempotency-key': at.fresh('key') };
    const [one, two] = [await at.call(way, 'send', input, key), await at.call(way, 'send', input, key)];
    equal(two.result.task.id, one.result.task.id, 'the same task');
  },
  'send: a key that is too long to be one is refused': async (at, way) => {
    const key = { 'idempotency-key': 'k'.repeat(256) };
    refused(way, await at.call(way, 'send', message(at, 'tck-complete-task'), key), 'INVALID_PARAMS');
  },
  'stream: begins with the task and ends with its end': async (at, way) => {
    const said = await at.stream(way, 'stream', message(at, 'tck-stream-001'));
    equal(eventOf(said[0]), 'task', 'the first event');
    equal(stateOf(said.at(-1).statusUpdate), 'COMPLETED', 'the last event');
    truth(
      said.some((each) => each.artifactUpdate),
      'an artifact in between',
    );
  },
  'stream: chunks of an artifact come in order, and the last one says so': async (at, way) => {
    const pieces = 'urn:tollbridge:a2a:pieces:v1';
    const headers = { 'a2a-extensions': pieces, 'x-a2a-extensions': pieces };
    const said = await at.stream(way, 'stream', message(at, 'tck-stream-artifact-chunked'), headers);
    const chunks = said.flatMap(({ artifactUpdate }) => artifactUpdate ?? []);
    equal(chunks.map(({ artifact }) => textOf(artifact.parts[0]) ?? '').join(''), 'chunk-1 chunk-2', 'the text');
    // The older client forgets this one over gRPC.
    const kept = !(way.version === '0.3' && way.binding === 'GRPC');
    if (kept) equal(chunks.map(({ append = false }) => append).slice(0, 2), [false, true], 'append');
    equal(chunks.at(-1).lastChunk, true, 'lastChunk');
  },
  'stream: who does not join chunks gets each artifact once, whole': async (at, way) => {
    const said = await at.stream(way, 'stream', message(at, 'tck-stream-artifact-chunked'));
    const chunks = said.flatMap(({ artifactUpdate }) => artifactUpdate ?? []);
    const received = chunks.map(({ artifact, lastChunk }) => [textOf(artifact.parts[0]), lastChunk]);
    equal(received, [['chunk-1 chunk-2', true]], 'the artifact');
  },
  'stream: ends when it is the peer who has to speak': async (at, way) => {
    const said = await at.stream(way, 'stream', message(at, 'tck-input-required'));
    equal(stateOf(said.at(-1).statusUpdate), 'INPUT_REQUIRED', 'the last event');
  },
  'stream: an answer streams the rest': async (at, way) => {
    const { id } = await begun(at, way, 'tck-input-required');
    const said = await at.stream(way, 'stream', message(at, 'answer', { taskId: id }));
    equal([eventOf(said[0]), stateOf(said.at(-1).statusUpdate)], ['task', 'COMPLETED'], 'first and last');
  },
  'stream: as much history as is wanted': async (at, way) => {
    const { id } = await begun(at, way, 'tck-input-required');
    const input = { ...message(at, 'answer', { taskId: id }), configuration: { historyLength: 1 } };
    const [first] = await at.stream(way, 'stream', input);
    equal(first.task.history?.length, 1, 'messages');
  },
  'get: a task is what the send said': async (at, way) => {
    const task = await begun(at, way, 'tck-artifact-text');
    // Over gRPC 0.3 cannot say "as much as there is": there, nothing said is none.
    equal((await at.call(way, 'get', { id: task.id, historyLength: 10 })).result, task, 'the task');
  },
  'get: a task nobody has': async (at, way) => {
    refused(way, await at.call(way, 'get', { id: 'task_nobody' }), 'TASK_NOT_FOUND');
  },
  'get: as much history as is wanted': async (at, way) => {
    const { id } = await begun(at, way, 'tck-artifact-text');
    const lengths = await Promise.all(
      [0, 1, 10].map(
        async (historyLength) => (await at.call(way, 'get', { id, historyLength })).result.history?.length ?? 0,
      ),
    );
    equal(lengths, [0, 1, 2], 'messages');
  },
  'cancel: work under way is stopped': async (at, way) => {
    const { id } = await begun(at, way, 'tck-work', {}, { returnImmediately: true });
    equal(stateOf((await at.call(way, 'cancel', { id })).result), 'CANCELED', 'state');
    equal(stateOf((await at.call(way, 'cancel', { id })).result), 'CANCELED', 'again');
  },
  'cancel: what has ended cannot be': async (at, way) => {
    const { id } = await begun(at, way, 'tck-complete-task');
    refused(way, await at.call(way, 'cancel', { id }), 'TASK_NOT_CANCELABLE');
  },
  'cancel: a task nobody has': async (at, way) => {
    refused(way, await at.call(way, 'cancel', { id: 'task_nobody' }), 'TASK_NOT_FOUND');
  },
  'subscribe: a snapshot first, then what comes': async (at, way) => {
    const { id } = await begun(at, way, 'tck-work', {}, { returnImmediately: true });
    const reading = at.stream(way, 'subscribe', { id });
    // Cancelled when it may not have been received yet: the snapshot or the update says so, and the stream ends.
    await at.call(way, 'cancel', { id });
    const said = await reading.catch((cause) => [{ ended: String(cause) }]);
    if (!said[0].ended)
      equal([eventOf(said[0]), stateOf(said.at(-1).statusUpdate)], ['task', 'CANCELED'], 'first and last');
  },
  'subscribe: what has ended has no stream': async (at, way) => {
    const { id } = await begun(at, way, 'tck-complete-task');
    refused(way, await at.call(way, 'subscribe', { id }), 'UNSUPPORTED_OPERATION');
  },
  'subscribe: a task nobody has': async (at, way) => {
    refused(way, await at.call(way, 'subscribe', { id: 'task_nobody' }), 'TASK_NOT_FOUND');
  },
  'push: a config is kept, shown, listed and removed': async (at, way) => {
    const { id: taskId } = await begun(at, way, 'tck-complete-task');
    const id = at.fresh('config').slice(0, 60);
    const made = await at.call(way, 'createPush', { taskId, id, url: PUBLIC_HOOK, token: 't' });
    equal([made.result?.url, made.result?.taskId], [PUBLIC_HOOK, taskId], 'what was made');
    equal((await at.call(way, 'getPush', { taskId, id })).result.url, PUBLIC_HOOK, 'what is shown');
    equal((await at.call(way, 'listPush', { taskId })).result.configs.length, 1, 'what is listed');
    truth(!(await at.call(way, 'deletePush', { taskId, id })).error, 'it can be removed');
    equal((await at.call(way, 'listPush', { taskId })).result.configs ?? [], [], 'what is left');
  },
  'push: nobody inside is called': async (at, way) => {
    const { id: taskId } = await begun(at, way, 'tck-complete-task');
    for (const url of ['https://127.0.0.1/', 'https://169.254.169.254/', 'https://[::1]/', 'ftp://files.example/']) {
      refused(way, await at.call(way, 'createPush', { taskId, id: 'c', url }), 'INVALID_PARAMS');
    }
  },
  'push: a task nobody has': async (at, way) => {
    refused(way, await at.call(way, 'listPush', { taskId: 'task_nobody' }), 'TASK_NOT_FOUND');
  },
  'push: a config nobody has': async (at, way) => {
    const { id: taskId } = await begun(at, way, 'tck-complete-task');
    refused(way, await at.call(way, 'getPush', { taskId, id: 'nothing' }), 'TASK_NOT_FOUND');
  },
  'card: the extended card is for authenticated callers': async (at, way) => {
    const { result } = await at.call(way, 'card', {});
    equal(typeof result.name, 'string', 'a name');
    truth(Array.isArray(result.skills), 'skills');
  },
  'nobody: a call without a token is refused, when tokens are asked for': async (at, way) => {
    if (!at.token) return;
    const came = await at.call(way, 'get', { id: 'x' }, { authorization: '' });
    if (way.binding === 'GRPC') equal(came.status, 16, 'UNAUTHENTICATED');
    else equal([came.status, came.headers.get('www-authenticate')], [401, 'Bearer'], 'refused');
  },
  "another caller: another's task is not there": async (at, way) => {
    if (!at.other) return;
    const { id } = await begun(at, way, 'tck-input-required');
    const as = { authorization: `Bearer ${at.other}` };
    refused(way, await at.call(way, 'get', { id }, as), 'TASK_NOT_FOUND');
    refused(way, await at.call(way, 'cancel', { id }, as), 'TASK_NOT_FOUND');
    refused(way, await at.call(way, 'send', message(at, 'x', { taskId: id }), as), 'TASK_NOT_FOUND');
  },
  'an SDK client reads a stream to its end': async (at, way) => {
    const states: (string | undefined)[] = [];
    let text = '';
    for await (const { state, kind, text: piece = '' } of (await at.client(way)).stream('go')) {
      if (kind === 'status') states.push(state);
      text += piece;
    }
    equal(states.at(-1), 'COMPLETED', 'the last state');
    equal(typeof text, 'string', 'text');
  },
};

const NOT_IN_OLDER_BUFFERS = ['send: as much history as is wanted', 'stream: as much history as is wanted'];

export function operationChecks(ways: readonly Way[]): readonly A2aCheck[] {
  return ways.flatMap((way) =>
    Object.entries(RUNS)
      .filter(([name]) => !(NOT_IN_OLDER_BUFFERS.includes(name) && inOlderBuffers(way)))
      .map(([name, run]) => ({ name: `${nameOf(way)}, ${name}`, run: (at: Target) => run(at, way) })),
  );
}
