/**
 * A turn is a task whose work the agent does by itself while the relay observes: it begins when policy allows it, all its
 * events go through its sink, and it is over when the log says so. Requests outside of any prompt also run in a turn, so that
 * every act belongs to a task.
 */
import {
  type Actor,
  type AskRecord,
  asText,
  type Bridge,
  type CoreEvent,
  type End,
  Fault,
  type JsonObject,
  type Logger,
  LruMap,
} from '../../../../src/index.ts';
import type { Thoughts } from '../../server/render-thoughts.ts';
import { within } from '../../shapes.ts';
import { type Cards, createCards } from '../editor-view/tool-cards.ts';
import { createTurnRecorder, type TurnRecorder } from '../from-agent/turn-recorder.ts';
import { createPulse, type Pulse } from './activity.ts';
import type { SessionKey } from './session-keys.ts';
import type { StartedWork, TurnWork, WrappedAgent } from './wrapped-agent.ts';

export interface Turn {
  /** Prompts may join a turn that a prompt began; a turn for a single request ends with it. */
  readonly kind: 'prompt' | 'own';
  readonly sessionKey: SessionKey;
  /** The task id, once the task was accepted. */
  readonly task: Promise<string>;
  /** Resolves once the work may begin; rejects when it ended before. */
  readonly begun: Promise<Begun>;
  /** Set once it has begun. */
  readonly live: Begun | undefined;
  /** Its end is known and only being recorded. */
  readonly finished: boolean;
  /** The event that ended it. Never rejects. */
  readonly over: Promise<CoreEvent | undefined>;
  /** Prompts that have no result yet. */
  prompts: number;
  /** Who canceled it: an editor that cancels closes its own dialogs. */
  canceled: 'by_editor' | 'by_us' | undefined;
  readonly cards: Cards;
  readonly pulse: Pulse;
  /** Sets how it ended; the first call counts. */
  finish(end: End): void;
}

export interface Begun extends StartedWork {
  readonly recorder: TurnRecorder;
}

export interface TurnOpening {
  readonly kind: Turn['kind'];
  readonly actor: Actor;
  readonly input: JsonObject;
  readonly about: JsonObject;
  /** The trace it belongs to. */
  readonly trace_id?: string;
  /** A question was opened, or closed, in the log. */
  asked(ask: AskRecord, turn: Turn): void;
  answered(askId: string, state: string, turn: Turn): void;
  /** A message for the turn, from another client. */
  steered?(message: JsonObject, turn: Turn): void;
  /** The task was canceled: by the person here, by another client, or by the gateway. */
  stopped(turn: Turn): void;
}

type TurnEvents = 'asked' | 'answered' | 'stopped' | 'steered' | 'actor';

export interface Turns {
  /** Resolves when the gate accepts it; otherwise throws a fault with the reason. */
  open(sessionKey: SessionKey, opening: TurnOpening): Promise<Turn>;
  /** A turn for a task that another client submitted; the work is begun by the process that runs the task. */
  adopt(sessionKey: SessionKey, taskId: string, opening: Pick<TurnOpening, TurnEvents>): { turn: Turn; work: TurnWork };
  /** The turn that the last prompt of this agent session began, if it still runs. */
  running(wireId: string): Turn | undefined;
  /** The last ended turn of this agent session, for late updates. */
  last(wireId: string): Begun | undefined;
  /** The agent has sent its last update of the turn; later ones do not belong to it, though its end is still being recorded. */
  leave(turn: Turn): void;
  all(): readonly Turn[];
}

export interface TurnsDeps {
  readonly bridge: Bridge;
  readonly agent: WrappedAgent;
  readonly name: string;
  readonly log: Logger;
  readonly thoughts: Thoughts;
}

/** The most sessions whose last turn is remembered. */
const MOST_LAST = 64;
const ENDS = ['task.completed', 'task.failed', 'task.canceled'];

export function createTurns({ bridge, agent, name, log, thoughts }: TurnsDeps): Turns {
  const current = new Map<string, Turn>();
  const unended = new Set<Turn>();
  const last = new LruMap<string, Begun>(MOST_LAST);

  function make(sessionKey: SessionKey, kind: Turn['kind'], opening: Pick<TurnOpening, TurnEvents>) {
    let begin: (begun: Begun) => void = () => {};
    let never: (why: Fault) => void = () => {};
    let end: (end: End) => void = () => {};
    let close: (event: CoreEvent | undefined) => void = () => {};
    let accept: (taskId: string) => void = () => {};
    let refuse: (why: unknown) => void = () => {};
    const done = new Promise<End>((resolve) => {
      end = resolve;
    });
    const begun = new Promise<Begun>((resolve, reject) => {
      begin = resolve;
      never = reject;
    });
    begun.catch(() => {});
    const task = new Promise<string>((resolve, reject) => {
      accept = resolve;
      refuse = reject;
    });
    task.catch(() => {});
    const state = { live: undefined as Begun | undefined, finished: false };
    const turn: Turn = {
      kind,
      sessionKey,
      task,
      begun,
      over: new Promise((resolve) => {
        close = resolve;
      }),
      prompts: 0,
      canceled: undefined,
      cards: createCards(),
      pulse: createPulse(),
      finish(how) {
        state.finished = true;
        leave(turn);
        end(how);
      },
      get live() {
        return state.live;
      },
      get finished() {
        return state.finished;
      },
    };
    const work: TurnWork = {
      async begin(options) {
        const recorder = createTurnRecorder({
          ...options,
          log,
          thoughts,
          cwd: sessionKey.cwd,
          agent: name,
          sessionId: sessionKey.wireId,
          spent: sessionKey.spent,
        });
        state.live = { ...options, recorder };
        begin(state.live);
        const how = await done;
        sessionKey.spent = recorder.reader.meter.spent;
        return how;
      },
      // Ended work also gets a stop, because it may have left something running; an agent leaves nothing.
      stop: () => {
        if (!state.finished) opening.stopped(turn);
      },
      steer: (message) => opening.steered?.(message, turn),
    };
    if (kind === 'prompt') current.set(sessionKey.wireId, turn);
    unended.add(turn);
    const forget = () => {
      unended.delete(turn);
      leave(turn);
    };
    function accepted(taskId: string): void {
      accept(taskId);
      watch(turn, taskId, opening).then((last) => {
        agent.forget(taskId);
        forget();
        never(new Fault('policy_violation', asText(last?.payload.reason ?? 'the work ended before it began')));
        close(last);
      });
    }
    return { turn, work, task, forget, refuse, accepted };
  }

  async function open(sessionKey: SessionKey, opening: TurnOpening): Promise<Turn> {
    const { turn, work, task, forget, refuse, accepted } = make(sessionKey, opening.kind, opening);
    agent.expect(task, work);
    try {
      const { resource } = await bridge.submit({
        kind: 'task.submit',
        actor: opening.actor,
        ...(opening.trace_id && { trace_id: opening.trace_id }),
        body: {
          session_id: sessionKey.sessionId,
          input: opening.input,
          agent: name,
          metadata: { acp: { ...opening.about, session_id: sessionKey.wireId } },
        },
      });
      accepted(resource.id);
      return turn;
    } catch (cause) {
      refuse(cause);
      forget();
      throw cause;
    }
  }

  function leave(turn: Turn): void {
    const { wireId } = turn.sessionKey;
    if (current.get(wireId) !== turn) return;
    current.delete(wireId);
    last.delete(wireId);
    if (turn.live) last.set(wireId, turn.live);
  }

  /** Follows the task in the log, wherever its events come from. */
  async function watch(
    turn: Turn,
    taskId: string,
    opening: Pick<TurnOpening, TurnEvents>,
  ): Promise<CoreEvent | undefined> {
    const stop = new AbortController();
    try {
      const from = { stream: { of: 'task', id: taskId } as const };
      for await (const event of bridge.follow(opening.actor, from, stop.signal)) {
        mayBeSilent(turn.pulse, event);
        if (event.event === 'vendor.tollbridge.ask_opened') {
          opening.asked(event.payload.ask, turn);
        } else if (event.event === 'vendor.tollbridge.ask_closed') {
          opening.answered(asText(event.payload.ask_id), asText(event.payload.state), turn);
        } else if (ENDS.includes(event.event)) return event;
      }
    } catch (cause) {
      log.error({ err: cause, task: taskId }, 'a turn can no longer be watched');
    } finally {
      stop.abort();
    }
    return undefined;
  }

  return {
    open,
    adopt(sessionKey, taskId, opening) {
      const { turn, work, accepted } = make(sessionKey, 'prompt', opening);
      accepted(taskId);
      return { turn, work };
    },
    running: (wireId) => current.get(wireId),
    last: (wireId) => last.get(wireId),
    leave,
    all: () => [...unended],
  };
}

/** Peers an agent may be waiting for: approvers, and the executor of a call that arrived by another door. */
function mayBeSilent(pulse: Pulse, { event, payload }: CoreEvent): void {
  switch (event) {
    case 'vendor.tollbridge.ask_opened':
      pulse.waits(asText(within(payload.ask, 'id')));
      break;
    case 'vendor.tollbridge.ask_closed':
      pulse.waitsNoMore(asText(payload.ask_id));
      break;
    case 'tool.requested':
      // A terminal runs by itself; a request that waits for its end is counted separately.
      if (payload.evidence === 'held' && payload.kind !== 'terminal') pulse.waits(asText(payload.tool_call_id));
      break;
    case 'tool.completed':
    case 'tool.failed':
    case 'tool.denied':
      pulse.waitsNoMore(asText(payload.tool_call_id));
  }
}
