/**
 * An agent outside that asks before it acts and tells what it did. It follows the demo's words with hands of its own; a person answers
 * at another door.
 */
import { randomUUID } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { readScript, type Step } from '../../../src/demo/script.ts';
import { createDemoTools } from '../../../src/demo/tools.ts';
import { eventually } from '../../support/eventually.ts';
import type { Setup } from '../backends.ts';
import type { Loose } from '../gateway-client.ts';
import { type DoorClient, type Shown, settled, type Work } from './door.ts';
import { newestTask } from './mcp.ts';

export const ahp: DoorClient = {
  title: 'AHP',
  async give({ near, hands }: Setup, says): Promise<Work> {
    const journal = join(hands.dir, 'journal');
    const tools = createDemoTools({ journal: (line) => appendFileSync(journal, `${line}\n`) });
    const stop = new AbortController();
    const session_id = randomUUID();
    const steps = readScript(says);
    const run = { run_id: `run-${session_id}`, session_id };
    const said: string[] = [];
    const canceled = settled<Shown>();
    let count = 0;

    async function report(event_type: string, payload: object, asks = false): Promise<Loose> {
      count += 1;
      const timestamp = new Date().toISOString();
      const params = { event_type, session_id, agent_id: 'teller', timestamp, depth: 0, payload };
      const answer = await fetch(`${near.url}/ahp`, {
        method: 'POST',
        headers: { authorization: `Bearer ${near.agentToken}`, 'content-type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', ...(asks && { id: `a${count}` }), method: 'ahp/event', params }),
      });
      const text = await answer.text();
      return text ? JSON.parse(text).result : undefined;
    }
    const lifecycle = (status: string, more: object = {}) =>
      report('run_lifecycle', { ...run, status, updated_at: new Date().toISOString(), ...more });
    const say = async (text: string) => {
      said.push(text);
      await report('post_response', { response_text: text });
    };

    async function call({ tool, arguments: args, intent }: Extract<Step, { do: 'call' }>): Promise<void> {
      const about = { action_type: 'tool_call', tool_name: tool, arguments: args };
      const { decision, reason, modified_payload } = await report('pre_action', about, true);
      if (decision !== 'allow' && decision !== 'modify') return await say(`I was not allowed to ${intent}: ${reason}`);
      const what = (modified_payload?.arguments ?? args) as typeof args;
      if (tool === 'slow_mail') {
        appendFileSync(journal, 'begun slow_mail\n');
        await new Promise((resolve) => stop.signal.addEventListener('abort', resolve, { once: true }));
        return;
      }
      const action = { kind: 'tool', tool, arguments: what } as unknown as Parameters<typeof tools.call>[0];
      const { status, output, error } = await tools.call(action, stop.signal);
      const text = String((output as Loose)?.text ?? error);
      await report('post_action', {
        ...about,
        arguments: what,
        result: { status: status === 'ok' ? 'success' : 'error', output: text },
      });
      await say(text);
    }

    async function work(): Promise<Shown> {
      await report('session_start', { model_provider: 'demo', model_name: 'script' });
      const asked = await report('pre_prompt', { prompt: says }, true);
      if (asked?.decision !== 'allow') throw new Error(`the prompt was answered with ${JSON.stringify(asked)}`);
      await lifecycle('executing', { prompt: says });
      let failure: string | undefined;
      for (const step of steps) {
        if (failure || stop.signal.aborted) break;
        if (step.do === 'say') await say(step.text);
        else if (step.do === 'call') await call(step);
        else if (step.do === 'fail') failure = step.code;
        else throw new Error(`this agent cannot ${step.do}`);
      }
      if (stop.signal.aborted) return await canceled.promise;
      await lifecycle(failure ? 'failed' : 'completed', failure ? { error: failure } : {});
      await report('session_end', {});
      return { state: failure ? 'FAILED' : 'COMPLETED', text: said.join('') };
    }
    const ended = work();
    ended.catch(() => {});
    const open = async () => (await near.list('/v1/permission-requests?status=pending'))[0];

    return {
      task: () => newestTask(near),
      asked: async () => void (await eventually(open, 'a question')),
      async answer(answer) {
        await near.post(`/v1/permission-requests/${(await open()).id}/respond`, answer);
      },
      async cancel(reason) {
        stop.abort();
        await lifecycle('cancelled', { error: reason });
        await report('session_end', {});
        canceled.resolve({ state: 'CANCELED', text: said.join('') });
      },
      async drop() {},
      async readOn() {},
      async file() {
        return '';
      },
      ended: () => ended,
      async close() {
        stop.abort();
      },
    };
  },
};
