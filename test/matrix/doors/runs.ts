/**
 * A service of the runs API: a run, its stream, its signals. The API's only no ends the run, so a no to one act is given by a person
 * at another door.
 */
import { randomUUID } from 'node:crypto';
import { runState } from '../../../mappings/runs.ts';
import { isTerminal } from '../../../src/model/words.ts';
import { eventually } from '../../support/eventually.ts';
import type { Setup } from '../backends.ts';
import type { Loose } from '../gateway-client.ts';
import { createInbox, type DoorClient, eventsOf, type Work } from './door.ts';

export const runs: DoorClient = {
  title: 'runs',
  async give({ near }: Setup, says): Promise<Work> {
    const inbox = createInbox<Loose>();
    let line = new AbortController();
    const authorization = `Bearer ${near.pair}`;
    async function call(method: string, path: string, body?: object, more: object = {}): Promise<Loose> {
      const answer = await fetch(`${near.url}/v1/runs${path}`, {
        method,
        headers: { authorization, ...(body && { 'content-type': 'application/json' }), ...more },
        ...(body && { body: JSON.stringify(body) }),
      });
      const said = (await answer.json()) as Loose;
      if (!answer.ok) throw new Error(`${path} was answered with ${answer.status} ${JSON.stringify(said)}`);
      return said;
    }
    const key = { 'idempotency-key': randomUUID() };
    const { id } = await call('POST', '', { input: { user_query: says }, metadata: {} }, key);
    const task = id.replace(/^run_/, 'task_');
    async function follow(): Promise<void> {
      const { signal } = line;
      const last = inbox.frames.at(-1)?.seq;
      try {
        const at = `${near.url}/v1/runs/${id}/events/stream${last ? `?cursor=${last}` : ''}`;
        const answer = await fetch(at, { headers: { authorization }, signal });
        for await (const { data } of eventsOf(answer.body!)) inbox.add(JSON.parse(data));
      } catch (cause) {
        if (!signal.aborted) inbox.fail(cause);
      }
    }
    void follow();
    const isQuestion = ({ type }: Loose) => type === 'run.awaiting_input';
    return {
      task: async () => task,
      asked: async () => void (await inbox.find(isQuestion, 'a question')),
      async answer({ approved, value, reason }) {
        const idempotency_key = randomUUID();
        if (value !== undefined)
          await call('POST', `/${id}/signal`, { action: 'submit_input', payload: value, idempotency_key });
        else if (approved)
          await call('POST', `/${id}/signal`, { action: 'approve', payload: { reason }, idempotency_key });
        else {
          const [question] = await near.list(`/v1/tasks/${task}/permission-requests?status=pending`);
          await near.post(`/v1/permission-requests/${question.id}/respond`, { approved, reason });
        }
      },
      cancel: async (reason) => void (await call('POST', `/${id}/cancel`, { reason })),
      async drop() {
        await inbox.find(({ payload }) => payload.value?.kind === 'content_delta', 'words');
        line.abort();
      },
      async readOn() {
        line = new AbortController();
        void follow();
      },
      // A run names its files; their content is at another door.
      async file() {
        return '';
      },
      async ended() {
        const over = async () => {
          const { status } = await call('GET', `/${id}`);
          const state = runState.toCore(status);
          return state && isTerminal(state) ? state : undefined;
        };
        const state = await eventually(over, 'the run to be over', { timeoutMs: 20_000 });
        await inbox.find(
          ({ type }) => /^run\.(worker\.(succeeded|failed)|cancelled|failed)$/.test(type),
          'its last event',
        );
        const said = inbox.frames.filter(({ type }) => type === 'step.done');
        return { state, text: said.map(({ payload }) => payload.value?.content ?? '').join('') };
      },
      async close() {
        line.abort();
      },
    };
  },
};
