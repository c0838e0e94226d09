/**
 * What a remote task asks, put to our own people under our own policy, and their answer sent back. Each question is put
 * once; a remote without a list of questions is asked in the one way its task can be answered.
 */
import {
  type Answer,
  type Clock,
  EFFECTS,
  Fault,
  type Json,
  type JsonObject,
  type Logger,
  type ProposedAction,
  type Sink,
} from '../../src/index.ts';
import { isPassing, Refusal, type Remote } from '../../src/wire/remote.ts';
import type { Reading } from './client-translate.ts';
import { readList } from './client-watch.ts';

export interface QuestionsDeps {
  readonly remote: Remote;
  readonly sink: Sink;
  readonly taskId: string;
  readonly reading: Pick<Reading, 'askedAbout'>;
  readonly log: Logger;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  pause(ms: number, signal: AbortSignal): Promise<void>;
}

export interface Questions {
  /** The task waits in this state; puts whatever it waits for and was not put yet. `known` came with the event. */
  look(status: string, known?: JsonObject): Promise<void>;
  /** True while someone here has not answered. */
  readonly waiting: boolean;
}

/** A permission request as a remote may describe it. */
interface Request {
  readonly id: string;
  readonly status?: string;
  readonly source?: string;
  readonly request?: Json;
  readonly action?: Json;
  readonly expires_at?: string | null;
}

const ANSWER_TRIES = 6;

export function createQuestions(deps: QuestionsDeps): Questions {
  const { remote, sink, taskId, log, signal } = deps;
  const put = new Set<string>();
  let open = 0;
  let listed = true;
  /** For servers that only say that they wait: how often they have. */
  let unnamed = 0;

  async function pending(): Promise<readonly Request[] | undefined> {
    if (!listed) return undefined;
    try {
      const body = await remote.call<unknown>('GET', `/v1/tasks/${taskId}/permission-requests?limit=200`, { signal });
      return readList(body).data.flatMap((item) => {
        const request = item as Request;
        return typeof request?.id === 'string' && (request.status ?? 'pending') === 'pending' ? [request] : [];
      });
    } catch (cause) {
      if (!(cause instanceof Refusal) || isPassing(cause)) throw cause;
      listed = false;
      return undefined;
    }
  }

  function begin(asking: () => Promise<void>): void {
    open += 1;
    asking()
      .catch((cause) => {
        if (!signal.aborted)
          log.warn({ err: cause, remote_task: taskId }, 'a question of a remote could not be settled');
      })
      .finally(() => {
        open -= 1;
      });
  }

  async function settle(request: Request): Promise<void> {
    const answer = await ask(request);
    if (signal.aborted) return;
    const path = `/v1/permission-requests/${request.id}/respond`;
    await send('POST', path, toResponse(answer), `tollbridge-${request.id}`);
  }

  async function ask(request: Request): Promise<Answer> {
    const told = objectOf(request.request) ?? {};
    const question = textOf(told.question) ?? textOf(told.prompt) ?? textOf(told.message);
    const ext = { harn: { permission_request: request as unknown as Json } };
    if (!isApproval(request, told)) {
      const left = request.expires_at ? Date.parse(request.expires_at) - Date.parse(deps.clock.now()) : Number.NaN;
      const schema = objectOf(told.schema);
      return await sink.ask({
        kind: 'input',
        key: request.id,
        question: question ?? 'The remote asks for a value.',
        ...(schema && { schema }),
        ...(left > 0 && { expires_ms: left }),
        ext,
      });
    }
    const action = toAction(request, told);
    if (action.tool_call_id) deps.reading.askedAbout(action.tool_call_id);
    return await sink.ask({ kind: 'approval', action, ...(question && { question }), ext });
  }

  /** The task says no more than that it waits: it is answered by a message. */
  async function settleUnnamed(status: string): Promise<void> {
    const key = `${taskId}.${unnamed}`;
    if (status === 'INPUT_REQUIRED') {
      const question = 'The remote waits for an input.';
      const answer = await sink.ask({ kind: 'input', key, question });
      if (signal.aborted) return;
      const text =
        answer.kind === 'value' ? wordsOf(answer.value as Json) : `no answer: ${answer.reason ?? answer.kind}`;
      await message('input', { type: 'text', text, visibility: 'public' }, key);
      return;
    }
    const action = { kind: 'tool' as const, tool: 'unknown', effect: 'unknown' as const, evidence: 'asked' as const };
    const answer = await sink.ask({ kind: 'approval', action });
    if (signal.aborted) return;
    const { approved, reason } = toResponse(answer);
    const value = { approved: approved ?? false, ...(reason && { reason }) };
    await message('tool_confirmation', { type: 'json', value, visibility: 'public' }, key);
  }

  async function message(kind: string, part: JsonObject, key: string): Promise<void> {
    const body = { kind, message: { role: 'user', parts: [part] } };
    await send('POST', `/v1/tasks/${taskId}/messages`, body, `tollbridge-${key}`);
  }

  /** An answer once given must arrive; that it came too late is nobody's fault. */
  async function send(method: string, path: string, body: object, key: string): Promise<void> {
    for (let tries = 1, wait = 250; ; tries += 1, wait *= 2) {
      try {
        await remote.call(method, path, { body, key, signal });
        return;
      } catch (cause) {
        if (cause instanceof Fault && (cause.kind === 'conflict' || cause.kind === 'not_found')) return;
        if (!isPassing(cause) || tries >= ANSWER_TRIES) throw cause;
        await deps.pause(wait, signal);
      }
    }
  }

  return {
    get waiting() {
      return open > 0;
    },
    async look(status, known) {
      const named = known && typeof known.id === 'string' ? [known as unknown as Request] : await pending();
      for (const request of named ?? []) {
        if (put.has(request.id)) continue;
        put.add(request.id);
        begin(() => settle(request));
      }
      if (named || open > 0) return;
      unnamed += 1;
      begin(() => settleUnnamed(status));
    },
  };
}

/** Whoever relays an agent's permission question asks for a yes; otherwise the kind of question says what it wants. */
function isApproval({ source, action }: Request, told: JsonObject): boolean {
  if (source === 'acp') return true;
  const kind = textOf(told.kind) ?? textOf(told.type);
  if (kind) return !/^(input|ask|ask_user|question|elicit)/.test(kind);
  return objectOf(action) !== undefined;
}

function toAction({ id, action }: Request, told: JsonObject): ProposedAction {
  const call = objectOf(told.toolCall) ?? {};
  const given = { ...call, ...(objectOf(action) ?? {}) };
  const tool = textOf(given.tool) ?? textOf(given.name) ?? textOf(given.title) ?? 'unknown';
  const callId = textOf(told.tool_call_id) ?? textOf(given.tool_call_id) ?? textOf(call.toolCallId) ?? id;
  const args = objectOf(given.arguments) ?? objectOf(given.input) ?? objectOf(given.rawInput) ?? {};
  const effect = EFFECTS.find((word) => word === given.effect) ?? 'unknown';
  const target = textOf(given.target);
  return {
    kind: 'tool',
    tool_call_id: callId,
    tool,
    arguments: args,
    effect,
    evidence: 'asked',
    ...(target && { target }),
  };
}

function toResponse(answer: Answer): { approved?: boolean; answer?: Json; reason?: string; reviewer?: string } {
  const by = 'by' in answer ? { reviewer: answer.by } : {};
  switch (answer.kind) {
    case 'approved':
      return { approved: true, ...by, ...(answer.reason && { reason: answer.reason }) };
    case 'value':
      return { answer: answer.value as Json, ...by };
    default:
      return { approved: false, ...by, reason: answer.reason };
  }
}

function wordsOf(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function objectOf(value: Json | undefined): JsonObject | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;
}

function textOf(value: Json | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
