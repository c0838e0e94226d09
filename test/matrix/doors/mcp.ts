/** A client of MCP 2025-11-25 over streamable HTTP: agents are tools, questions are forms, long work is a task of the protocol. */
import { eventually } from '../../support/eventually.ts';
import type { Setup } from '../backends.ts';
import type { Gateway, Loose } from '../gateway-client.ts';
import { LONG } from '../stories.ts';
import { createInbox, type DoorClient, eventsOf, type Work } from './door.ts';

const REVISION = '2025-11-25';

export const mcp: DoorClient = {
  title: 'MCP',
  async give({ near, agent }: Setup, says): Promise<Work> {
    const inbox = createInbox<Loose>();
    const closing = new AbortController();
    let session = '';
    let count = 0;

    async function post(frame: object, signal = closing.signal): Promise<void> {
      const answer = await fetch(`${near.url}/mcp`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${near.token}`,
          accept: 'application/json, text/event-stream',
          'content-type': 'application/json',
          'mcp-protocol-version': REVISION,
          ...(session && { 'mcp-session-id': session }),
        },
        body: JSON.stringify({ jsonrpc: '2.0', ...frame }),
        signal,
      });
      session = answer.headers.get('mcp-session-id') ?? session;
      const type = answer.headers.get('content-type') ?? '';
      if (type.startsWith('text/event-stream'))
        for await (const { data } of eventsOf(answer.body!)) inbox.add(JSON.parse(data));
      else if (type.startsWith('application/json')) inbox.add(await answer.json());
      else if (!answer.ok) inbox.add({ failed: answer.status });
    }
    /** Said now, answered when it is answered. */
    const say = (frame: object, signal?: AbortSignal) =>
      void post(frame, signal).catch((cause) => {
        if (!signal?.aborted && !closing.signal.aborted) inbox.fail(cause);
      });
    async function call(method: string, params: object): Promise<Loose> {
      const id = begin(method, params);
      return await answerTo(id, method);
    }
    function begin(method: string, params: object, signal?: AbortSignal): number {
      count += 1;
      say({ id: count, method, params }, signal);
      return count;
    }
    async function answerTo(id: number, what: string): Promise<Loose> {
      const { result, error } = await inbox.find(
        (frame) => frame.id === id && frame.method === undefined,
        `an answer to ${what}`,
      );
      if (error) throw new Error(`${what} was answered with ${JSON.stringify(error)}`);
      return result;
    }

    const before = await newestTask(near);
    const capabilities = { elicitation: { form: {} } };
    const clientInfo = { name: 'client', version: '1' };
    await call('initialize', { protocolVersion: REVISION, capabilities, clientInfo });
    await post({ method: 'notifications/initialized' });
    const params = { name: `agent__${agent}`, arguments: { message: says }, _meta: { progressToken: 'words' } };
    const isQuestion = ({ method, id }: Loose) => method === 'elicitation/create' && id !== undefined;
    const words = () => inbox.frames.filter(({ method }) => method === 'notifications/progress');
    const long = says === LONG;
    let reading = new AbortController();
    let canceled = false;
    let taskId: string | undefined;
    let calling: number;
    if (long) {
      const { task } = await call('tools/call', { ...params, task: { ttl: 60_000 } });
      taskId = task.taskId;
      calling = begin('tasks/result', { taskId }, reading.signal);
    } else calling = begin('tools/call', params);

    return {
      async task() {
        if (taskId) return taskId;
        const shown = inbox.frames.find(({ id, method }) => id === calling && method === undefined)?.result;
        if (shown) return shown.structuredContent.task_id;
        const another = async () => {
          const newest = await newestTask(near);
          return newest === before ? undefined : newest;
        };
        return await eventually(another, 'the task');
      },
      asked: async () => void (await inbox.find(isQuestion, 'a question')),
      async answer({ approved, value, reason }) {
        const { id } = await inbox.find(isQuestion, 'a question');
        const decision = approved ? 'approve' : 'deny';
        const content = value === undefined ? { decision, reason } : { value };
        await post({ id, result: { action: 'accept', content } });
      },
      async cancel(reason) {
        canceled = true;
        await post({ method: 'notifications/cancelled', params: { requestId: calling, reason } });
      },
      async drop() {
        reading.abort();
      },
      async readOn() {
        reading = new AbortController();
        calling = begin('tasks/result', { taskId }, reading.signal);
      },
      async file(name) {
        const { content } = await answerTo(calling, 'the call');
        const link = content.find((each: Loose) => each.type === 'resource_link' && each.name === name);
        if (!link) return '';
        const { contents } = await call('resources/read', { uri: link.uri });
        return contents[0].text;
      },
      async ended() {
        // A canceled call has no answer: its client has said so itself.
        if (canceled)
          return {
            state: 'CANCELED',
            text: words()
              .map((frame) => frame.params.message)
              .join(''),
          };
        const { content, structuredContent } = await answerTo(calling, 'the call');
        const text = content.map((each: Loose) => each.text ?? '').join('');
        return { state: structuredContent.status, text };
      },
      async close() {
        closing.abort();
        reading.abort();
      },
    };
  },
};

/** The newest task that has no parent task. */
export async function newestTask(near: Gateway): Promise<string> {
  const tasks = (await near.list('/v1/tasks')).filter(({ parent_task_id }) => !parent_task_id);
  return tasks.reduce((one, other) => (one.created_at > other.created_at ? one : other)).id;
}
