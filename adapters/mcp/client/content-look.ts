/**
 * What a server sends beside the answers of calls, and a model reads all the same: resources, prompts, and the results of calls that
 * became tasks, which are fetched by requests and arrive in notifications too. Policy looks at it before it is passed on.
 */
import { methodRow } from '../../../mappings/mcp.ts';
import type { InspectContent, JsonObject } from '../../../src/index.ts';
import { type FrameOutcome, type Notice, outcomeOf } from '../frames.ts';

export interface ContentLook {
  answer(outcome: FrameOutcome): Promise<FrameOutcome>;
  /** Passes notifications on in the order they came. */
  notices(notify: (frame: Notice) => void): (frame: Notice) => void;
}

export const asItIs: InspectContent = async (content) => content;

export function createContentLook(inspect: InspectContent, method: string): ContentLook {
  let passedOn: Promise<void> = Promise.resolve();

  /** A result that is withheld leaves a task that failed, for the reason. */
  async function looked(frame: Notice): Promise<Notice> {
    try {
      return { ...frame, params: await inspect(frame.params ?? {}, 'call') };
    } catch (thrown) {
      const { result: _, ...state } = frame.params ?? {};
      return { ...frame, params: { ...state, status: 'failed', ...(outcomeOf(thrown) as JsonObject) } };
    }
  }

  return {
    async answer(outcome) {
      await passedOn;
      if (!methodRow(method)?.reads) return outcome;
      const of = method.startsWith('tasks/') ? 'call' : 'request';
      if ('error' in outcome) return { error: (await inspect({ ...outcome.error }, of)) as typeof outcome.error };
      return { result: await inspect(outcome.result, of) };
    },
    notices(notify) {
      if (method !== 'subscriptions/listen') return notify;
      return (frame) => {
        const seen = frame.method === 'notifications/tasks' ? looked(frame) : frame;
        passedOn = passedOn.then(async () => notify(await seen));
      };
    },
  };
}
