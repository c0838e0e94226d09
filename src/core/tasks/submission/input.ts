/** The input of new work: a message, which joins the transcript of its session, or data, which stays with the task. */
import type { Decision } from '../../../model/actions.ts';
import type { EventDraft } from '../../../model/events.ts';
import { asFault, Fault } from '../../../model/faults.ts';
import { type MessageInput, MessageInput as MessageInputShape } from '../../../model/resources.ts';
import type { JsonObject } from '../../../model/schema.ts';
import { check, validator } from '../../../model/validate.ts';
import { messageEvents } from '../../commands/transcript.ts';
import type { Context, Received } from '../../context.ts';
import { goOnWith } from '../../waiting.ts';
import { inTask } from '../lifecycle.ts';

const isMessageInput = validator(MessageInputShape);

export function createInputOpening(deps: Context) {
  /** A task whose input is a message adds it to the transcript; any other input stays with the task. */
  return function opening(
    input: JsonObject,
    location: { workspace_id: string; session_id: string; task_id: string },
    by: string,
  ): Opened | Promise<Opened> {
    const at = inTask({ id: location.task_id, ...location });
    if (!isMessageInput(input)) {
      requireWhole(input);
      return goOnWith(deps.log.fit(input, { ...location, now: deps.clock.now() }), ({ value, artifacts }) => {
        const events = artifacts.map(
          (artifact): EventDraft => ({ event: 'artifact.created', payload: { artifact }, ...at }),
        );
        return { input: value as JsonObject, events, born: [] };
      });
    }
    return goOnWith(messageEvents(deps, at, input as MessageInput, by), (events) => {
      const spoken = events.find(({ event }) => event === 'user.message' || event === 'agent.message')?.payload.message;
      const message = spoken as JsonObject & { id: string };
      // An id that the caller chose may be in use already.
      return { input: message, events, born: 'id' in input ? [] : [message.id] };
    });
  };
}

/** Input that has parts is meant as a message and must be a valid one. As plain data, the visibility of its parts would be ignored. */
export function requireWhole(input: JsonObject): void {
  const parts = Array.isArray(input.parts) ? (input.parts as readonly (JsonObject | null)[]) : [];
  const means = ('role' in input && 'parts' in input) || parts.some((part) => typeof part?.type === 'string');
  if (!means) return;
  try {
    check(MessageInputShape, input, 'input');
  } catch (thrown) {
    const { message, param = '' } = asFault(thrown);
    throw new Fault('invalid_request', message, { param: `/input${param === '/' ? '' : param}` });
  }
}

/** The input of a task as it is in the task and in the log. */
interface Opened {
  readonly input: JsonObject;
  readonly events: readonly EventDraft[];
  readonly born: readonly string[];
}

/** The input as the agent gets it, once the log redacts everything it may not hold. */
export function wholeInput(
  unlogged: Received<'task.submit'>['unlogged'],
  learn: (secret: string) => boolean,
): JsonObject | undefined {
  return unlogged?.secrets.every((secret) => learn(secret)) ? unlogged.input : undefined;
}

/** A rule that rewrites a prompt into nothing names no alternative input: that is a refusal. */
export function withInput(decision: Decision): Decision {
  if (decision.verdict !== 'modify' || decision.arguments?.input) return decision;
  const reason = `${decision.reason} (the rule rewrites the prompt but gives no input)`;
  return { ...decision, verdict: 'block', reason };
}
