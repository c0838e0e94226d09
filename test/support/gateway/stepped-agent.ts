/**
 * An agent that does what the test asks while it runs, one step after the other, and remembers it all: started again after
 * a crash it does the same from the beginning, under the same names.
 */
import type { ActResult, AgentBackend, Sink } from '../../../src/ports/index.ts';

export type Step =
  | { readonly do: 'act'; readonly id: string; readonly tool: string }
  | { readonly do: 'ask'; readonly key: string }
  | { readonly do: 'say'; readonly text: string }
  | { readonly do: 'report'; readonly usd_micros: number }
  /** With timeout it waits for everything it has begun. */
  | { readonly do: 'finish'; readonly patient: boolean }
  | { readonly do: 'fail' };

export interface Puppet extends AgentBackend {
  tell(taskId: string, step: Step): void;
  /** How acts came out, by task and call, each time the agent received it. */
  readonly received: { readonly task: string; readonly id: string; readonly result: ActResult }[];
}

export function puppet({ name = 'puppet', resume }: { readonly name?: string; readonly resume: boolean }): Puppet {
  const scripts = new Map<string, { steps: Step[]; wake: Set<() => void> }>();
  const received: Puppet['received'] = [];
  const scriptOf = (taskId: string) => {
    const known = scripts.get(taskId) ?? { steps: [], wake: new Set() };
    scripts.set(taskId, known);
    return known;
  };

  async function follow(taskId: string, sink: Sink, signal: AbortSignal): Promise<'COMPLETED'> {
    const script = scriptOf(taskId);
    const begun: Promise<unknown>[] = [];
    const begin = (work: Promise<unknown>) => {
      work.catch(() => {}); // looked at where it is awaited
      begun.push(work);
    };
    for (let at = 0; ; at += 1) {
      while (at >= script.steps.length && !signal.aborted) await nextStep(script.wake, signal);
      if (signal.aborted) throw new Error('told to stop');
      const step = script.steps[at] as Step;
      switch (step.do) {
        case 'act':
          begin(
            sink
              .act({ kind: 'tool', tool: step.tool, tool_call_id: step.id, arguments: { id: step.id } })
              .then((result) => {
                if (!signal.aborted) received.push({ task: taskId, id: step.id, result });
              }),
          );
          break;
        case 'ask':
          begin(sink.ask({ kind: 'input', key: step.key, question: `${step.key}?` }));
          break;
        case 'say':
          await sink.emit({
            event: 'agent.message',
            payload: {
              message: { role: 'assistant', parts: [{ type: 'text', text: step.text, visibility: 'public' }] },
            },
          });
          break;
        case 'report':
          await sink.emit({
            event: 'vendor.tollbridge.usage',
            payload: { usd_micros: step.usd_micros, call_id: `u${at}` },
          });
          break;
        case 'finish':
          if (step.patient) await Promise.allSettled(begun);
          if (signal.aborted) throw new Error('told to stop');
          return 'COMPLETED';
        case 'fail':
          throw new Error('as told');
      }
    }
  }

  return {
    name,
    abilities: { resume, evidence: 'held' },
    received,
    start: async ({ task }, sink, signal) => ({
      done: follow(task.id, sink, signal).then((state) => ({ state })),
    }),
    tell(taskId, step) {
      const { steps, wake } = scriptOf(taskId);
      steps.push(step);
      for (const each of [...wake]) each();
    },
  };
}

function nextStep(wake: Set<() => void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      wake.delete(done);
      signal.removeEventListener('abort', done);
      resolve();
    };
    wake.add(done);
    signal.addEventListener('abort', done, { once: true });
  });
}
