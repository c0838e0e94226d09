/** A client of the Agents Protocol: over REST with an event stream, or over a WebSocket. */
import { WebSocket } from 'ws';
import type { Setup } from '../backends.ts';
import { type Gateway, type Loose, VERSION } from '../gateway-client.ts';
import { createInbox, type DoorClient, eventsOf, type Work } from './door.ts';

const END = /^task\.(completed|failed|canceled)$/;
const inputOf = (text: string) => ({ role: 'user', parts: [{ type: 'text', text, visibility: 'public' }] });

async function session({ near }: Setup): Promise<string> {
  const [workspace] = await near.list('/v1/workspaces');
  return (await near.post('/v1/sessions', { workspace_id: workspace.id })).id;
}

export async function fileOf(near: Gateway, task: string, name: string): Promise<string> {
  const files = await near.list(`/v1/artifacts?task_id=${task}`);
  const file = files.find(({ metadata }) => metadata.name === name);
  return file ? await near.get(`/v1/artifacts/${file.id}/content`) : '';
}

/** What a reader of events was shown, whichever way they came. */
function shownIn(events: readonly Loose[]) {
  const end = events.find(({ event }) => END.test(event));
  const said = events.filter(({ event }) => event === 'agent.message').flatMap(({ payload }) => payload.message.parts);
  return { state: end?.payload.to, text: said.map(({ text = '' }) => text).join('') };
}

const isDelta = ({ event }: Loose) => event === 'vendor.tollbridge.message_delta';

export const rest: DoorClient = {
  title: 'Agents Protocol, REST',
  async give(setup, says): Promise<Work> {
    const { near } = setup;
    const { id } = await near.post(`/v1/sessions/${await session(setup)}/tasks`, { input: inputOf(says) });
    const inbox = createInbox<Loose>();
    let line = new AbortController();
    async function follow(): Promise<void> {
      const { signal } = line;
      const last = inbox.frames.at(-1)?.id;
      const headers = { authorization: `Bearer ${near.token}`, accept: 'text/event-stream', ...VERSION };
      const resumed = last && { 'last-event-id': last };
      try {
        const answer = await fetch(`${near.url}/v1/tasks/${id}/stream`, {
          headers: { ...headers, ...resumed },
          signal,
        });
        for await (const { data } of eventsOf(answer.body!)) inbox.add(JSON.parse(data));
      } catch (cause) {
        if (!signal.aborted) inbox.fail(cause);
      }
    }
    void follow();
    return {
      task: async () => id,
      asked: async () => void (await inbox.find(({ event }) => event === 'vendor.tollbridge.ask_opened', 'a question')),
      async answer({ value, ...answer }) {
        const [question] = await near.list(`/v1/tasks/${id}/permission-requests?status=pending`);
        const body = value === undefined ? answer : { answer: value };
        await near.post(`/v1/permission-requests/${question.id}/respond`, body);
      },
      cancel: async (reason) => void (await near.post(`/v1/tasks/${id}/cancel`, { reason })),
      async drop() {
        await inbox.find(isDelta, 'words');
        line.abort();
      },
      async readOn() {
        line = new AbortController();
        void follow();
      },
      file: (name) => fileOf(near, id, name),
      async ended() {
        await inbox.find(({ event }) => END.test(event), 'the end');
        return shownIn(inbox.frames);
      },
      async close() {
        line.abort();
      },
    };
  },
};

export const socket: DoorClient = {
  title: 'Agents Protocol, WebSocket',
  async give(setup, says): Promise<Work> {
    const { near } = setup;
    const sessionId = await session(setup);
    const inbox = createInbox<Loose>();
    let line: WebSocket;
    let count = 0;
    async function connect(): Promise<void> {
      const events = inbox.frames.filter(({ type }) => type === 'event');
      const last = events.at(-1)?.cursor;
      const path = `/v1/sessions/${sessionId}/events/stream${last ? `?last_event_id=${last}` : ''}`;
      const headers = { authorization: `Bearer ${near.token}`, ...VERSION };
      line = new WebSocket(`${near.url.replace(/^http/, 'ws')}${path}`, { headers });
      line.on('message', (data) => inbox.add(JSON.parse(String(data))));
      await new Promise((resolve, reject) => line.once('open', resolve).once('error', reject));
    }
    async function command(frame: object): Promise<Loose> {
      count += 1;
      const id = `c${count}`;
      line.send(JSON.stringify({ id, ...frame }));
      const answer = await inbox.find((each) => each.id === id, `the answer to ${id}`);
      if (answer.type === 'error') throw new Error(`the socket answered ${JSON.stringify(answer)}`);
      return answer.body;
    }
    await connect();
    const { id } = await command({ type: 'task.submit', input: inputOf(says) });
    const events = () => inbox.frames.filter(({ type, event }) => type === 'event' && event.task_id === id);
    return {
      task: async () => id,
      asked: async () => void (await inbox.find(({ type }) => type === 'request', 'a question')),
      async answer({ value, ...answer }) {
        const { request_id } = await inbox.find(({ type }) => type === 'request', 'a question');
        await command({ type: 'response', request_id, ...(value === undefined ? answer : { answer: value }) });
      },
      cancel: async (reason) => void (await command({ type: 'task.cancel', task_id: id, reason })),
      async drop() {
        await inbox.find(({ type, event }) => type === 'event' && isDelta(event), 'words');
        line.terminate();
      },
      readOn: connect,
      file: (name) => fileOf(near, id, name),
      async ended() {
        await inbox.find(
          ({ type, event }) => type === 'event' && event.task_id === id && END.test(event.event),
          'the end',
        );
        return shownIn(events().map(({ event }) => event));
      },
      async close() {
        line.terminate();
      },
    };
  },
};
