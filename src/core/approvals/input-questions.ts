/** A question for a value that work needs: opened, waited for, and its answer spent once. */
import type { Actor } from '../../model/actions.ts';
import type { Answer } from '../../model/asks.ts';
import type { Task } from '../../model/resources.ts';
import { isTerminal } from '../../model/words.ts';
import type { Row } from '../../ports/index.ts';
import type { Log } from '../events/log.ts';
import type { RunRow } from '../events/rows.ts';
import { openRun, readsOf } from '../tasks/lifecycle.ts';
import type { Asks, NewAsk } from './asks.ts';

/** The decision says who may answer. Asking again with the same key is the same question, until its answer is spent. */
export type InputQuestion = Pick<NewAsk, 'key' | 'question' | 'schema' | 'expires_ms' | 'ext' | 'decision'>;

interface Asker {
  readonly actor: Actor;
  readonly signal: AbortSignal;
  readonly withdrawn?: AbortSignal | undefined;
}

export type AskForInput = (task: Task, question: InputQuestion, asker: Asker) => Promise<Answer>;

export function createInputQuestions({ log, asks }: { readonly log: Log; readonly asks: Asks }): AskForInput {
  return async (task, { key, question, ...more }, { actor, signal, withdrawn }) => {
    const digest = asks.digest({ actor, kind: 'elicit', tool: key, arguments: { question } });
    let askId = '';
    await log.commit({
      reads: readsOf(task.id),
      decide(at) {
        const { now, run } = openRun(at, task.id);
        const raised = asks.raise(at, now, run, {
          ...more,
          kind: 'input',
          key,
          digest,
          question,
          action: { kind: 'elicit', actor: actor.id },
          name: 'input',
        });
        askId = raised.ask_id;
        return { events: raised.events };
      },
    });
    const answer = await asks.wait(askId, task.id, signal, { id: actor.id, withdrawn });
    // Work that was interrupted finds its answer when it asks again.
    if (!signal.aborted) await spend(task, askId);
    return answer;
  };

  /** A value is spent once; asking again under the same key is a new question. Work that waits for the same answer shares it. */
  async function spend(task: Task, askId: string): Promise<void> {
    await log.commit({
      reads: readsOf(task.id),
      decide(at) {
        const now = at.get<Task & Row>('task', task.id);
        const run = at.get<RunRow>('run', task.id);
        const answered = run?.asks.some((ask) => ask.id === askId && ask.state !== 'open');
        return { events: now && answered && !isTerminal(now.status) ? [asks.take(at, now, run, askId)] : [] };
      },
    });
  }
}
