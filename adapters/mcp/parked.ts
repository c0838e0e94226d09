/**
 * Calls that wait for their client to come back with an answer. In the modern era nobody can be asked while a request is
 * open: the answer says what is wanted, and the same request again brings it. In between, the call is kept here: bound to
 * who made it and to what it was, found by a name nobody can guess, and let go after a while.
 */
import { randomBytes } from 'node:crypto';
import { CODES } from '../../mappings/mcp.ts';
import { canonicalJson, Fault, type JsonObject } from '../../src/index.ts';
import type { StopSignal } from '../../src/wire/stop.ts';
import { failed, isObject, metaOf, type Notice, type Outcome } from './frames.ts';
import type { Input, Inputs, Inputted } from './line.ts';
import { createSpareSignals } from './spare-signals.ts';
import { cameToTask } from './task-owners.ts';

export interface Asking {
  /** Who asks, and for what: a request that comes back has to be the same. */
  readonly who: string;
  readonly method: string;
  readonly params: JsonObject;
  readonly signal: StopSignal;
  notify(notice: Notice): void;
}

export interface Running {
  /** Stays open while the call is parked; fires when it is given up. */
  readonly signal: AbortSignal;
  notify(notice: Notice): void;
  readonly input: Input;
}

export interface Parking {
  /** The outcome, or what is wanted first. */
  start(asking: Asking, run: (running: Running) => Promise<Outcome>): Promise<Outcome>;
  /** Undefined when the state is not one of ours. */
  resume(asking: Asking): Promise<Outcome> | undefined;
  close(): void;
}

interface Question {
  readonly requests: Inputs;
  readonly whole: JsonObject | undefined;
  answer(inputted: Inputted): void;
  refuse(cause: Error): void;
}
interface Call {
  readonly who: string;
  /** The request that began it: what it was is only spelled out when one comes back. */
  readonly began: Pick<Asking, 'method' | 'params'>;
  readonly stop: AbortController;
  readonly open: Set<Question>;
  notify: (notice: Notice) => void;
  /** What was told while nobody was there to hear it. */
  readonly unheard: Notice[];
  wake: () => void;
  outcome: Outcome | undefined;
  timer: NodeJS.Timeout | undefined;
}

const OURS = 'tollbridge.';
/** Questions that are asked together arrive together. */
const GATHER_MS = 5;
const MOST_UNHEARD = 100;
/** So many calls at a time find a signal that is there already. */
const MOST_SPARE = 64;

export function createParking(parkMs: number): Parking {
  const parked = new Map<string, Call>();
  const spare = createSpareSignals(MOST_SPARE);

  function begin(asking: Asking, run: (running: Running) => Promise<Outcome>): Call {
    const stop = spare.take();
    const call: Call = {
      who: asking.who,
      began: { method: asking.method, params: asking.params },
      stop,
      open: new Set(),
      notify: asking.notify,
      unheard: [],
      wake() {},
      outcome: undefined,
      timer: undefined,
    };
    const running: Running = {
      signal: stop.signal,
      notify: (notice) => call.notify(notice),
      input: (requests, whole, withdrawn) =>
        new Promise((answer, refuse) => {
          const question: Question = { requests, whole, answer, refuse };
          call.open.add(question);
          withdrawn?.addEventListener(
            'abort',
            () => {
              call.open.delete(question);
              refuse(new Fault('client_closed', 'the question was withdrawn'));
            },
            { once: true },
          );
          setTimeout(() => call.wake(), whole ? 0 : GATHER_MS);
        }),
    };
    run(running).then(
      (outcome) => settle(call, outcome),
      (cause) => settle(call, failed(CODES.internal, cause instanceof Error ? cause.message : 'the call failed')),
    );
    return call;
  }

  function settle(call: Call, outcome: Outcome): void {
    call.outcome = outcome;
    call.wake();
  }

  /** Until there is something to say to whoever is there now. One that leaves takes an unparked call with it. */
  async function next(call: Call, { signal }: Asking): Promise<Outcome> {
    const gone = () => call.stop.abort();
    signal.addEventListener('abort', gone, { once: true });
    try {
      if (!call.outcome && call.open.size === 0) {
        await new Promise<void>((resolve) => {
          call.wake = resolve;
        });
      }
      if (call.outcome) return call.outcome;
      return park(call);
    } finally {
      signal.removeEventListener('abort', gone);
    }
  }

  function park(call: Call): Outcome {
    const state = `${OURS}${randomBytes(24).toString('base64url')}`;
    parked.set(state, call);
    call.notify = (notice) => {
      if (call.unheard.length < MOST_UNHEARD) call.unheard.push(notice);
    };
    call.timer = setTimeout(() => {
      parked.delete(state);
      giveUp(call, 'the client did not come back with an answer');
    }, parkMs).unref();
    const questions = [...call.open];
    const [whole] = questions.flatMap((question) => (question.whole ? [question.whole] : []));
    const all = questions.map(({ requests, whole: theirs }) => (theirs ? requests : clean(requests)));
    const inputRequests = Object.assign({}, ...all) as JsonObject;
    const some = Object.keys(inputRequests).length > 0 && { inputRequests };
    return { result: { ...whole, resultType: 'input_required', ...some, requestState: state } };
  }

  function giveUp(call: Call, why: string): void {
    for (const question of call.open) question.refuse(new Fault('deadline_exceeded', why));
    call.open.clear();
    call.stop.abort();
  }

  return {
    async start(asking, run) {
      const call = begin(asking, run);
      const outcome = await next(call, asking);
      // What was parked, and what else is asked for, may go on after this answer, as a subscription or a task does.
      const over = outcome === call.outcome && asking.method === 'tools/call' && !cameToTask(outcome);
      if (over) spare.giveBack(call.stop);
      return outcome;
    },
    resume(asking) {
      const { requestState: state, inputResponses } = asking.params;
      if (typeof state !== 'string' || !state.startsWith(OURS)) return undefined;
      const call = parked.get(state);
      // Somebody else's, another request's, used before, too late: all the same to whoever holds it.
      if (!call || call.who !== asking.who || sameness(call.began) !== sameness(asking)) {
        return Promise.resolve(failed(CODES.invalidParams, 'Invalid or expired requestState'));
      }
      parked.delete(state);
      clearTimeout(call.timer);
      const now = metaOf(asking.params).progressToken;
      call.notify = (notice) => hear(notice, now, asking);
      for (const notice of call.unheard.splice(0)) call.notify(notice);
      const given = isObject(inputResponses) ? inputResponses : {};
      for (const question of [...call.open]) {
        const keys = Object.keys(question.requests);
        const answers = Object.fromEntries(
          keys.flatMap((key) => (Object.hasOwn(given, key) && isObject(given[key]) ? [[key, given[key]]] : [])),
        );
        // A server that put its questions itself hears whatever came of them; ours wait until they are answered.
        if (!question.whole && Object.keys(answers).length < keys.length) continue;
        call.open.delete(question);
        question.answer({
          inputResponses: question.whole ? mine(given, questionKeys(call)) : answers,
          meta: metaOf(asking.params),
        });
      }
      return next(call, asking);
    },
    close() {
      for (const call of parked.values()) {
        clearTimeout(call.timer);
        giveUp(call, 'the gateway is shutting down');
      }
      parked.clear();
    },
  };
}

/** Progress of a call goes by the name that whoever is there now has given it, and to nobody who gave it none. */
function hear(notice: Notice, token: unknown, { notify }: Asking): void {
  if (notice.method !== 'notifications/progress') notify(notice);
  else if (typeof token === 'string' || typeof token === 'number')
    notify({ ...notice, params: { ...notice.params, progressToken: token } });
}

/** Everything about a request but what coming back with answers changes. */
function sameness({ method, params }: Pick<Asking, 'method' | 'params'>): string {
  const { inputResponses: _i, requestState: _r, _meta: _m, ...rest } = params;
  return canonicalJson({ method, params: rest });
}

/** A token of the wire that asked has no place in a question that is carried. */
function clean(requests: Inputs): JsonObject {
  return Object.fromEntries(
    Object.entries(requests).map(([key, { method, params }]) => {
      const { progressToken: _, ...meta } = metaOf(params);
      const { _meta: _m, ...rest } = params ?? {};
      return [key, { method, params: Object.keys(meta).length > 0 ? { ...rest, _meta: meta } : rest }];
    }),
  );
}

function questionKeys(call: Call): ReadonlySet<string> {
  return new Set([...call.open].filter(({ whole }) => !whole).flatMap(({ requests }) => Object.keys(requests)));
}

/** Answers to a server, without those that were for somebody else. */
function mine(given: JsonObject, others: ReadonlySet<string>): JsonObject {
  return Object.fromEntries(Object.entries(given).filter(([key]) => !others.has(key)));
}
