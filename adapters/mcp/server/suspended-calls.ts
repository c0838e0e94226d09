/**
 * Calls that wait for input from their client. In the modern era a client cannot be asked while a request is open: the result
 * states what is required, and the client repeats the request with the answers. In between the call is suspended here: bound to
 * its caller and its request, found by a random state, and abandoned after a timeout.
 */
import { randomBytes } from 'node:crypto';
import { CODES } from '../../../mappings/mcp.ts';
import { canonicalJson, Fault, isObject, type JsonObject } from '../../../src/index.ts';
import { type FrameOutcome, failed, metaOf, type Notice } from '../frames.ts';
import type { Input, Inputs, Inputted } from '../request-context.ts';

export interface SuspendedRequest {
  /** The caller's scope. A repeated request has to have the same scope, method and params. */
  readonly who: string;
  readonly method: string;
  readonly params: JsonObject;
  readonly signal: AbortSignal;
  notify(notice: Notice): void;
}

export interface Running {
  /** Stays open while the call is suspended; fires when the call is abandoned. */
  readonly signal: AbortSignal;
  notify(notice: Notice): void;
  readonly input: Input;
}

export interface SuspendedCalls {
  /** The outcome, or an `input_required` result. */
  start(asking: SuspendedRequest, run: (running: Running) => Promise<FrameOutcome>): Promise<FrameOutcome>;
  /** Undefined when the `requestState` is not ours. */
  resume(asking: SuspendedRequest): Promise<FrameOutcome> | undefined;
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
  /** The request that began the call: it is serialized for comparison only when the client returns. */
  readonly began: Pick<SuspendedRequest, 'method' | 'params'>;
  readonly stop: AbortController;
  readonly open: Set<Question>;
  notify: (notice: Notice) => void;
  /** Notifications sent while no request of the client was open. */
  readonly undelivered: Notice[];
  wake: () => void;
  outcome: FrameOutcome | undefined;
  timer: NodeJS.Timeout | undefined;
}

const OURS = 'tollbridge.';
/** Questions that are asked at the same time arrive in one result. */
const GATHER_MS = 5;
const MOST_UNDELIVERED = 100;

/** `mark` ends the name of each state: the call waits in this process. */
export function createSuspendedCalls(suspendMs: number, mark = () => ''): SuspendedCalls {
  const suspended = new Map<string, Call>();

  function begin(asking: SuspendedRequest, run: (running: Running) => Promise<FrameOutcome>): Call {
    const stop = new AbortController();
    const call: Call = {
      who: asking.who,
      began: { method: asking.method, params: asking.params },
      stop,
      open: new Set(),
      notify: asking.notify,
      undelivered: [],
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

  function settle(call: Call, outcome: FrameOutcome): void {
    call.outcome = outcome;
    call.wake();
  }

  /** Waits until there is something to answer the open request with. A client that disconnects aborts a call that is not suspended. */
  async function next(call: Call, { signal }: SuspendedRequest): Promise<FrameOutcome> {
    const gone = () => call.stop.abort();
    signal.addEventListener('abort', gone, { once: true });
    try {
      if (!call.outcome && call.open.size === 0) {
        await new Promise<void>((resolve) => {
          call.wake = resolve;
        });
      }
      if (call.outcome) return call.outcome;
      return suspend(call);
    } finally {
      signal.removeEventListener('abort', gone);
    }
  }

  function suspend(call: Call): FrameOutcome {
    const state = `${OURS}${randomBytes(24).toString('base64url')}${mark()}`;
    suspended.set(state, call);
    call.notify = (notice) => {
      if (call.undelivered.length < MOST_UNDELIVERED) call.undelivered.push(notice);
    };
    call.timer = setTimeout(() => {
      suspended.delete(state);
      giveUp(call, 'the client did not come back with an answer');
    }, suspendMs).unref();
    const questions = [...call.open];
    const [whole] = questions.flatMap((question) => (question.whole ? [question.whole] : []));
    const all = questions.map(({ requests, whole: theirs }) => (theirs ? requests : clean(requests)));
    // The asking side chose the keys: assigning them could set `__proto__`.
    const inputRequests = Object.fromEntries(all.flatMap((each) => Object.entries(each))) as JsonObject;
    const some = Object.keys(inputRequests).length > 0 && { inputRequests };
    return { result: { ...whole, resultType: 'input_required', ...some, requestState: state } };
  }

  function giveUp(call: Call, why: string): void {
    for (const question of call.open) question.refuse(new Fault('deadline_exceeded', why));
    call.open.clear();
    call.stop.abort();
  }

  return {
    start: (asking, run) => next(begin(asking, run), asking),
    resume(asking) {
      const { requestState: state, inputResponses } = asking.params;
      if (typeof state !== 'string' || !state.startsWith(OURS)) return undefined;
      const call = suspended.get(state);
      // Another caller's state, one of another request, one used before and an expired one get the same answer.
      if (!call || call.who !== asking.who || sameness(call.began) !== sameness(asking)) {
        return Promise.resolve(failed(CODES.invalidParams, 'Invalid or expired requestState'));
      }
      suspended.delete(state);
      clearTimeout(call.timer);
      const now = metaOf(asking.params).progressToken;
      call.notify = (notice) => forward(notice, now, asking);
      for (const notice of call.undelivered.splice(0)) call.notify(notice);
      const responses = isObject(inputResponses) ? inputResponses : {};
      for (const question of [...call.open]) {
        const keys = Object.keys(question.requests);
        const answers = Object.fromEntries(
          keys.flatMap((key) =>
            Object.hasOwn(responses, key) && isObject(responses[key]) ? [[key, responses[key]]] : [],
          ),
        );
        // A server that asked in a result gets whatever the client answered; our own questions stay open until all are answered.
        if (!question.whole && Object.keys(answers).length < keys.length) continue;
        call.open.delete(question);
        question.answer({
          inputResponses: question.whole ? mine(responses, questionKeys(call)) : answers,
          meta: metaOf(asking.params),
        });
      }
      return next(call, asking);
    },
    close() {
      for (const call of suspended.values()) {
        clearTimeout(call.timer);
        giveUp(call, 'the gateway is shutting down');
      }
      suspended.clear();
    },
  };
}

/** Progress carries the token of the request that is open now, and is dropped if that request has none. */
function forward(notice: Notice, token: unknown, { notify }: SuspendedRequest): void {
  if (notice.method !== 'notifications/progress') notify(notice);
  else if (typeof token === 'string' || typeof token === 'number')
    notify({ ...notice, params: { ...notice.params, progressToken: token } });
}

/** The request without the members that change when the client returns with answers. */
function sameness({ method, params }: Pick<SuspendedRequest, 'method' | 'params'>): string {
  const { inputResponses: _i, requestState: _r, _meta: _m, ...rest } = params;
  return canonicalJson({ method, params: rest });
}

/** The progress token of the asking transport does not belong in a question that is forwarded. */
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

/** The answers for a server, without those to other questions. */
function mine(responses: JsonObject, others: ReadonlySet<string>): JsonObject {
  return Object.fromEntries(Object.entries(responses).filter(([key]) => !others.has(key)));
}
