/**
 * A turn is a task whose work the agent does by itself while we look on: it begins when policy lets it, everything in it
 * goes through its sink, and it is over when the log says so. Also what is asked outside of any prompt happens in a turn,
 * so that there is nothing that happens nowhere.
 */
import {
  type Actor,
  type AgentBackend,
  type AskRecord,
  asText,
  type Bridge,
  type CoreEvent,
  type End,
  Fault,
  type Ids,
  type JsonObject,
  type Logger,
  type Sink,
} from '../../../src/index.ts';
import { textOf, within } from '../shapes.ts';
import type { Thoughts } from '../thoughts.ts';
import { type Cards, createCards } from './cards.ts';
import type { Place } from './places.ts';
import { createPulse, type Pulse } from './pulse.ts';
import { createScribe, type Scribe } from './scribe.ts';

export interface Turn {
  /** Others may join what a prompt began; what was begun for one thing ends with it. */
  readonly kind: 'prompt' | 'own';
  readonly place: Place;
  /** Its task, once it was accepted. */
  readonly task: Promise<string>;
  /** Resolves once the work may begin; rejects when it ended before it could. */
  readonly begun: Promise<Begun>;
  /** Set as soon as it has begun. */
  readonly live: Begun | undefined;
  /** Its end was said; it is only being written down. */
  readonly finished: boolean;
  /** The event that ended it. Never rejects. */
  readonly over: Promise<CoreEvent | undefined>;
  /** Prompts that have no result yet. */
  prompts: number;
  /** Who wants it to stop, if anyone: an editor that does closes its own dialogs. */
  canceled: 'by_editor' | 'by_us' | undefined;
  readonly cards: Cards;
  readonly pulse: Pulse;
  /** How it ended, as whoever knows it says; the first word counts. */
  finish(end: End): void;
}

export interface Begun {
  readonly taskId: string;
  readonly sink: Sink;
  readonly scribe: Scribe;
  readonly signal: AbortSignal;
  /** Whether whoever it waits for is there at all. */
  readonly awaiting: () => Promise<boolean>;
}

export interface Opening {
  readonly kind: Turn['kind'];
  readonly actor: Actor;
  readonly input: JsonObject;
  readonly about: JsonObject;
  /** The trace it is part of. */
  readonly trace_id?: string;
  /** A question was opened, or closed, in the log. */
  asked(ask: AskRecord, turn: Turn): void;
  answered(askId: string, state: string, turn: Turn): void;
  /** Someone wants it to stop: the person here, someone elsewhere, or the house. */
  stopped(turn: Turn): void;
}

export interface Turns {
  readonly backend: AgentBackend;
  /** Accepted by the gate, or a fault that says why not. */
  open(place: Place, opening: Opening): Promise<Turn>;
  /** Of a session of the agent's: the turn its last prompt began, if that still runs. */
  running(wireId: string): Turn | undefined;
  /** The agent has said its last word; what comes now is not of this turn, though its end is still being written. */
  leave(turn: Turn): void;
  all(): readonly Turn[];
}

export interface TurnsDeps {
  readonly bridge: () => Bridge;
  readonly name: string;
  readonly ids: Ids;
  readonly log: Logger;
  readonly thoughts: Thoughts;
}

const ENDS = ['task.completed', 'task.failed', 'task.canceled'];

export function createTurns({ bridge, name, ids, log, thoughts }: TurnsDeps): Turns {
  const tickets = new Map<string, { begin(begun: Omit<Begun, 'scribe'>): Promise<End>; stop(): void }>();
  const current = new Map<string, Turn>();
  const unended = new Set<Turn>();

  const backend: AgentBackend = {
    name,
    abilities: { resume: false, evidence: 'asked' },
    async start({ task, awaiting = async () => false }, sink, signal) {
      const ticket = textOf(within(task.metadata, 'acp', 'ticket')) ?? '';
      const turn = tickets.get(ticket);
      if (!turn) throw new Fault('upstream_unavailable', 'only the editor of this agent can give it work');
      const done = turn.begin({ taskId: task.id, sink, signal, awaiting });
      return { done, stop: async () => turn.stop() };
    },
  };

  async function open(place: Place, opening: Opening): Promise<Turn> {
    const ticket = ids.next('ticket');
    let begin: (begun: Begun) => void = () => {};
    let never: (why: Fault) => void = () => {};
    let end: (end: End) => void = () => {};
    let close: (event: CoreEvent | undefined) => void = () => {};
    let accept: (taskId: string) => void = () => {};
    const done = new Promise<End>((resolve) => {
      end = resolve;
    });
    const begun = new Promise<Begun>((resolve, reject) => {
      begin = resolve;
      never = reject;
    });
    begun.catch(() => {});
    const state = { live: undefined as Begun | undefined, finished: false };
    const turn: Turn = {
      kind: opening.kind,
      place,
      task: new Promise((resolve) => {
        accept = resolve;
      }),
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
    tickets.set(ticket, {
      async begin(given) {
        const scribe = createScribe({
          ...given,
          log,
          thoughts,
          cwd: place.cwd,
          agent: name,
          sessionId: place.wireId,
          spent: place.spent,
        });
        state.live = { ...given, scribe };
        begin(state.live);
        const how = await done;
        place.spent = scribe.reading.meter.spent;
        return how;
      },
      // Also what has ended is told to stop, for what it may have left behind; an agent leaves nothing.
      stop: () => {
        if (!state.finished) opening.stopped(turn);
      },
    });
    if (opening.kind === 'prompt') current.set(place.wireId, turn);
    unended.add(turn);
    const forget = () => {
      tickets.delete(ticket);
      unended.delete(turn);
      leave(turn);
    };
    try {
      const { resource } = await bridge().submit({
        kind: 'task.submit',
        actor: opening.actor,
        ...(opening.trace_id && { trace_id: opening.trace_id }),
        body: {
          session_id: place.sessionId,
          input: opening.input,
          agent: name,
          metadata: { acp: { ...opening.about, session_id: place.wireId, ticket } },
        },
      });
      accept(resource.id);
      watch(turn, resource.id, opening).then((last) => {
        forget();
        never(new Fault('policy_violation', asText(last?.payload.reason ?? 'the work ended before it began')));
        close(last);
      });
      return turn;
    } catch (cause) {
      forget();
      throw cause;
    }
  }

  function leave(turn: Turn): void {
    const { wireId } = turn.place;
    if (current.get(wireId) === turn) current.delete(wireId);
  }

  /** What becomes of it is read from the log, wherever it was decided. */
  async function watch(turn: Turn, taskId: string, opening: Opening): Promise<CoreEvent | undefined> {
    const stop = new AbortController();
    try {
      const from = { stream: { of: 'task', id: taskId } as const };
      for await (const event of bridge().follow(opening.actor, from, stop.signal)) {
        mayBeSilent(turn.pulse, event);
        if (event.event === 'vendor.tollbridge.ask_opened') {
          opening.asked(event.payload.ask as unknown as AskRecord, turn);
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
    backend,
    open,
    running: (wireId) => current.get(wireId),
    leave,
    all: () => [...unended],
  };
}

/** Whom an agent may be waiting for: people, and whoever runs a call of its that came another way. */
function mayBeSilent(pulse: Pulse, { event, payload }: CoreEvent): void {
  switch (event) {
    case 'vendor.tollbridge.ask_opened':
      pulse.waits(asText(within(payload.ask, 'id')));
      break;
    case 'vendor.tollbridge.ask_closed':
      pulse.waitsNoMore(asText(payload.ask_id));
      break;
    case 'tool.requested':
      // A terminal runs on its own; whoever waits for its end says so.
      if (payload.evidence === 'held' && payload.kind !== 'terminal') pulse.waits(asText(payload.tool_call_id));
      break;
    case 'tool.completed':
    case 'tool.failed':
    case 'tool.denied':
      pulse.waitsNoMore(asText(payload.tool_call_id));
  }
}
