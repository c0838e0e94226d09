/** A peer: a message that is streamed, its answers, and the task at the end. In A2A 1.0, and in 0.3 as a peer that sends no version. */
import * as newer from '../../../mappings/a2a.ts';
import * as older from '../../../mappings/a2a-0.3.ts';
import { isTerminal } from '../../../src/model/words.ts';
import { eventually } from '../../support/eventually.ts';
import type { Setup } from '../backends.ts';
import type { Loose } from '../gateway-client.ts';
import { createInbox, type DoorClient, eventsOf, type Work } from './door.ts';

interface Dialect {
  readonly title: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly methods: Readonly<Record<'stream' | 'send' | 'get' | 'cancel' | 'subscribe', string>>;
  message(id: string, parts: readonly object[], taskId?: string): object;
  text(text: string): object;
  data(data: object): object;
  state(wire: string): string | undefined;
}

const EXTENSIONS = 'urn:tollbridge:a2a:resume:v1, urn:tollbridge:a2a:pieces:v1';

const NEWER: Dialect = {
  title: 'A2A 1.0',
  headers: { 'a2a-version': '1.0', 'a2a-extensions': EXTENSIONS },
  methods: {
    stream: 'SendStreamingMessage',
    send: 'SendMessage',
    get: 'GetTask',
    cancel: 'CancelTask',
    subscribe: 'SubscribeToTask',
  },
  message: (messageId, parts, taskId) => ({ messageId, role: 'ROLE_USER', parts, ...(taskId && { taskId }) }),
  text: (text) => ({ text }),
  data: (data) => ({ data }),
  state: (wire) => newer.taskState.toCore(wire as never),
};
const OLDER: Dialect = {
  title: 'A2A 0.3',
  headers: { 'x-a2a-extensions': EXTENSIONS },
  methods: {
    stream: 'message/stream',
    send: 'message/send',
    get: 'tasks/get',
    cancel: 'tasks/cancel',
    subscribe: 'tasks/resubscribe',
  },
  message: (messageId, parts, taskId) => ({
    kind: 'message',
    messageId,
    role: 'user',
    parts,
    ...(taskId && { taskId }),
  }),
  text: (text) => ({ kind: 'text', text }),
  data: (data) => ({ kind: 'data', data }),
  state: (wire) => older.taskState.toCore(wire as never),
};

/** A frame of a stream as its only member, whichever revision wrote it. */
const bodyOf = (result: Loose) => result?.task ?? result?.statusUpdate ?? result?.artifactUpdate ?? result;

function peer(dialect: Dialect): DoorClient {
  const { methods } = dialect;
  return {
    title: dialect.title,
    async give({ near, agent }: Setup, says): Promise<Work> {
      const inbox = createInbox<Loose>();
      const at = `${near.url}/a2a/${agent}`;
      const authorization = `Bearer ${near.token}`;
      let line = new AbortController();
      let count = 0;
      let over: Loose;

      async function post(method: string, params: object, signal?: AbortSignal, more: object = {}): Promise<Response> {
        count += 1;
        return await fetch(at, {
          method: 'POST',
          headers: { authorization, 'content-type': 'application/json', ...dialect.headers, ...more },
          body: JSON.stringify({ jsonrpc: '2.0', id: count, method, params }),
          ...(signal && { signal }),
        });
      }
      async function call(method: string, params: object): Promise<Loose> {
        const { result, error } = (await (await post(method, params)).json()) as Loose;
        if (error) throw new Error(`${method} was answered with ${JSON.stringify(error)}`);
        return bodyOf(result);
      }
      async function follow(method: string, params: object, more?: object): Promise<void> {
        const { signal } = line;
        try {
          const answer = await post(method, params, signal, more);
          if (!answer.headers.get('content-type')?.startsWith('text/event-stream')) {
            const { error } = (await answer.json()) as Loose;
            throw new Error(`${method} was answered with ${JSON.stringify(error)}`);
          }
          for await (const { data } of eventsOf(answer.body!)) {
            const { result, error } = JSON.parse(data);
            if (error) throw new Error(`a stream said ${JSON.stringify(error)}`);
            inbox.add(bodyOf(result));
          }
        } catch (cause) {
          if (!signal.aborted) inbox.fail(cause);
        }
      }
      void follow(methods.stream, { message: dialect.message('message-1', [dialect.text(says)]) });
      const first = await inbox.find(() => true, 'the task');
      const id: string = first.id;
      const stateOf = (frame: Loose) => dialect.state(frame?.status?.state ?? '');
      const isQuestion = (frame: Loose) => ['INPUT_REQUIRED', 'AUTH_REQUIRED'].includes(stateOf(frame) ?? '');
      const cursor = () =>
        inbox.frames.findLast((frame) => frame.metadata?.['urn:tollbridge:a2a:resume:v1'])?.metadata[
          'urn:tollbridge:a2a:resume:v1'
        ].cursor;

      return {
        task: async () => id,
        asked: async () => void (await inbox.find(isQuestion, 'a question')),
        async answer({ approved, value, reason }) {
          const { status } = await inbox.find(isQuestion, 'a question');
          const asked = status.message.parts.map((part: Loose) => part.data).find((data: Loose) => data?.askId);
          const part =
            value === undefined ? dialect.data({ askId: asked?.askId, approved, reason }) : dialect.text(value);
          over = await call(methods.send, { message: dialect.message('message-2', [part], id) });
        },
        async cancel(reason) {
          await call(methods.cancel, { id, metadata: { reason } });
        },
        async drop() {
          await inbox.find((frame) => frame.artifact, 'words');
          line.abort();
        },
        async readOn() {
          const last = cursor();
          line = new AbortController();
          void follow(methods.subscribe, { id }, last && { 'last-event-id': last });
        },
        async file(name) {
          const { artifacts = [] } = await call(methods.get, { id });
          const file = artifacts.find((each: Loose) => each.name === name);
          if (!file) return '';
          const answer = await fetch(`${at}/artifacts/${file.artifactId}`, { headers: { authorization } });
          return answer.ok ? await answer.text() : '';
        },
        async ended() {
          const isOver = (frame: Loose) => isTerminal(stateOf(frame) ?? '');
          if (!isOver(over ?? {})) {
            // A stream ends with its question: the peer looks again until the work is over.
            const look = async () => isOver(await call(methods.get, { id }));
            await eventually(look, 'the end', { timeoutMs: 60_000 });
          }
          const task = await call(methods.get, { id });
          const answers = (task.artifacts ?? []).filter((each: Loose) => each.name === 'response');
          const text = answers.flatMap(({ parts }: Loose) => parts.map((part: Loose) => part.text ?? '')).join('');
          return { state: stateOf(task) ?? task.status.state, text };
        },
        async close() {
          line.abort();
        },
      };
    },
  };
}

export const current = peer(NEWER);
export const legacy = peer(OLDER);
