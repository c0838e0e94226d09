/**
 * Puts the questions of a remote task to our approvers under our policy, and sends their answers back. Each question is put
 * once; for a remote without a list of questions, the answer is sent as a message to the task.
 */
import {
  type Answer,
  type Clock,
  EFFECTS,
  Fault,
  isObject,
  type Json,
  type JsonObject,
  type Logger,
  type ProposedAction,
  type Sink,
} from '../../../src/index.ts';
import { isPassing, pause, type Remote, RemoteRefusal, segment } from '../../../src/transport/outbound/remote.ts';
import type { UpdateReader } from './translate.ts';
import { readList } from './watch.ts';

interface QuestionsDeps {
  readonly remote: Remote;
  readonly sink: Sink;
  readonly taskId: string;
  readonly reader: Pick<UpdateReader, 'askedAbout'>;
  readonly log: Logger;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

interface Questions {
  /** The task waits in this state; puts every question that was not put yet. `known` came with the event. */
  look(status: string, known?: JsonObject): Promise<void>;
  /**
   * The remote reports that this question has been decided. True when the answer was ours; otherwise our question is withdrawn,
   * and the promise resolves when that is logged.
   */
  decidedThere(requestId: string): Promise<boolean>;
  /** True while a question is open here. */
  readonly waiting: boolean;
}

/** A permission request as a remote may describe it. */
type Request = {
  readonly id: string;
  readonly status?: string;
  readonly source?: string;
  readonly request?: Json;
  readonly action?: Json;
  readonly expires_at?: string | null;
};

const ANSWER_TRIES = 6;

export function createQuestions(deps: QuestionsDeps): Questions {
  const { remote, sink, taskId, log, signal } = deps;
  const put = new Map<string, { readonly taken: AbortController; readonly settled: Promise<boolean> }>();
  let open = 0;
  let listed = true;
  /** For servers that only report that they wait: how often they did. */
  let unnamed = 0;

  async function pending(): Promise<readonly Request[] | undefined> {
    if (!listed) return undefined;
    try {
      const path = `/v1/tasks/${segment(taskId)}/permission-requests?limit=200`;
      const body = await remote.call<unknown>('GET', path, { signal });
      return readList(body).data.flatMap((item) => {
        const request = item as Request;
        return typeof request?.id === 'string' && (request.status ?? 'pending') === 'pending' ? [request] : [];
      });
    } catch (cause) {
      if (!(cause instanceof RemoteRefusal) || isPassing(cause)) throw cause;
      listed = false;
      return undefined;
    }
  }

  /** True when it was settled with an answer of ours. */
  function begin(asking: () => Promise<boolean>): Promise<boolean> {
    open += 1;
    return asking()
      .catch((cause) => {
        if (!signal.aborted)
          log.warn({ err: cause, remote_task: taskId }, 'a question of a remote could not be settled');
        return false;
      })
      .finally(() => {
        open -= 1;
      });
  }

  async function settle(request: Request, taken: AbortSignal): Promise<boolean> {
    const answer = await ask(request, taken);
    if (signal.aborted || taken.aborted) return false;
    const path = `/v1/permission-requests/${segment(request.id)}/respond`;
    return await send('POST', path, toResponse(answer), `tollbridge-${request.id}`);
  }

  async function ask(request: Request, withdrawn: AbortSignal): Promise<Answer> {
    const details = objectOf(request.request) ?? {};
    const question = textOf(details.question) ?? textOf(details.prompt) ?? textOf(details.message);
    const ext = { harn: { permission_request: request as Json } };
    if (!isApproval(request, details)) {
      const left = request.expires_at ? Date.parse(request.expires_at) - Date.parse(deps.clock.now()) : Number.NaN;
      const schema = objectOf(details.schema);
      return await sink.ask({
        kind: 'input',
        key: request.id,
        question: question ?? 'The remote asks for a value.',
        ...(schema && { schema }),
        ...(left > 0 && { expires_ms: left }),
        ext,
        withdrawn,
      });
    }
    const action = toAction(request, details);
    if (action.tool_call_id) deps.reader.askedAbout(action.tool_call_id);
    return await sink.ask({ kind: 'approval', action, ...(question && { question }), ext, withdrawn });
  }

  /** The task reports only that it waits, so it is answered by a message. */
  async function settleUnnamed(status: string): Promise<boolean> {
    const key = `${taskId}.${unnamed}`;
    if (status === 'INPUT_REQUIRED') {
      const question = 'The remote waits for an input.';
      const answer = await sink.ask({ kind: 'input', key, question });
      if (signal.aborted) return false;
      const text =
        answer.kind === 'value' ? wordsOf(answer.value as Json) : `no answer: ${answer.reason ?? answer.kind}`;
      return await message('input', { type: 'text', text, visibility: 'public' }, key);
    }
    const action = { kind: 'tool' as const, tool: 'unknown', effect: 'unknown' as const, evidence: 'asked' as const };
    const answer = await sink.ask({ kind: 'approval', action });
    if (signal.aborted) return false;
    const { approved, reason } = toResponse(answer);
    const value = { approved: approved ?? false, ...(reason && { reason }) };
    return await message('tool_confirmation', { type: 'json', value, visibility: 'public' }, key);
  }

  async function message(kind: string, part: JsonObject, key: string): Promise<boolean> {
    const body = { kind, message: { role: 'user', parts: [part] } };
    return await send('POST', `/v1/tasks/${segment(taskId)}/messages`, body, `tollbridge-${key}`);
  }

  /** Retries until an answer has arrived. An answer that came too late is no failure: the result is false. */
  async function send(method: string, path: string, body: object, key: string): Promise<boolean> {
    for (let tries = 1, wait = 250; ; tries += 1, wait *= 2) {
      try {
        await remote.call(method, path, { body, key, signal });
        return true;
      } catch (cause) {
        if (cause instanceof Fault && (cause.kind === 'conflict' || cause.kind === 'not_found')) return false;
        if (!isPassing(cause) || tries >= ANSWER_TRIES) throw cause;
        await pause(wait, signal);
      }
    }
  }

  return {
    get waiting() {
      return open > 0;
    },
    async decidedThere(requestId) {
      const question = put.get(requestId);
      // An answer that is being sent at this moment either counted or came too late; the remote's reply to it decides.
      question?.taken.abort();
      return (await question?.settled) ?? false;
    },
    async look(status, known) {
      const named = known && typeof known.id === 'string' ? [known as Request] : await pending();
      for (const request of named ?? []) {
        if (put.has(request.id)) continue;
        const taken = new AbortController();
        put.set(request.id, { taken, settled: begin(() => settle(request, taken.signal)) });
      }
      if (named || open > 0) return;
      unnamed += 1;
      void begin(() => settleUnnamed(status));
    },
  };
}

/** A server that relays an ACP permission request asks for an approval; otherwise the kind of the question decides. */
function isApproval({ source, action }: Request, details: JsonObject): boolean {
  if (source === 'acp') return true;
  const kind = textOf(details.kind) ?? textOf(details.type);
  if (kind) return !/^(input|ask|ask_user|question|elicit)/.test(kind);
  return objectOf(action) !== undefined;
}

function toAction({ id, action }: Request, details: JsonObject): ProposedAction {
  const call = objectOf(details.toolCall) ?? {};
  const fields = { ...call, ...(objectOf(action) ?? {}) };
  const tool = textOf(fields.tool) ?? textOf(fields.name) ?? textOf(fields.title) ?? 'unknown';
  const callId = textOf(details.tool_call_id) ?? textOf(fields.tool_call_id) ?? textOf(call.toolCallId) ?? id;
  const args = objectOf(fields.arguments) ?? objectOf(fields.input) ?? objectOf(fields.rawInput) ?? {};
  const effect = EFFECTS.find((word) => word === fields.effect) ?? 'unknown';
  const target = textOf(fields.target);
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
  return isObject(value) ? value : undefined;
}

function textOf(value: Json | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
