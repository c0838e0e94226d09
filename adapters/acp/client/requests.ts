/** Requests of an agent to its client while it works: each is submitted to the bridge and answered in the protocol's words. */

import { POLICY_BLOCK } from '../../../mappings/acp.ts';
import { HITL_RESPOND, HOST_CALL } from '../../../mappings/acp-harn.ts';
import { type Answer, asText, Fault, type Json, type JsonObject, type Logger, type Sink } from '../../../src/index.ts';
import { RpcError } from '../../../src/transport/json-rpc/messages.ts';
import type { Asked } from '../../../src/transport/json-rpc/peer.ts';
import type { BackendSettings } from '../config.ts';
import { hitlEnded, toHitlAsk, toHitlResponse } from '../hitl.ts';
import { passesErrorsOn, refusalOf, refusalText } from '../refusals.ts';
import { lookup, objectOf, textOf, within } from '../shapes.ts';
import { inputOf, onlyLasting, optionsOf, toAction, toolNameOf, toWireOutcome, withReason } from '../translate.ts';
import type { Files } from './acts/files.ts';
import type { createHostCalls } from './acts/host-calls.ts';
import type { Terminals } from './acts/terminals.ts';
import type { AgentProcess } from './agent-process.ts';
import type { RecordedFact } from './facts.ts';
import type { UpdateReader } from './read-updates.ts';

export interface RequestsDeps {
  readonly settings: BackendSettings;
  readonly sink: Sink;
  readonly reader: UpdateReader;
  readonly files: Files;
  readonly terminals: Terminals;
  readonly hostCalls: ReturnType<typeof createHostCalls>;
  readonly agentProcess: AgentProcess;
  readonly log: Logger;
  readonly signal: AbortSignal;
  write(steps: readonly RecordedFact[]): Promise<void>;
}

export interface Requests {
  answer(asked: Asked): Promise<Json>;
  /** A question that arrives without expecting a response, and is answered by a call of ours. */
  harnQuestion(reported: JsonObject): void;
  /** The agent has resolved the question itself: it is withdrawn. */
  harnSettled(reported: JsonObject): void;
  /** How many requests are in progress. */
  readonly open: number;
  /** When the last one finished. */
  readonly settledAt: number;
  /** True when the agent did anything through us. */
  readonly held: boolean;
}

export function createRequests(deps: RequestsDeps): Requests {
  const { settings, sink, reader, files, terminals, hostCalls, agentProcess, log, signal, write } = deps;
  let open = 0;
  let settledAt = 0;
  let held = false;
  let count = 0;

  const asks = new Map<string, number>();

  /** The call's id for its first question; every further question has its own id and its own answer. */
  function questionId(callId: string): string {
    const times = (asks.get(callId) ?? 0) + 1;
    asks.set(callId, times);
    return times === 1 ? callId : `${callId}?${times}`;
  }

  async function permission({ params, signal: withdrawn }: Asked): Promise<JsonObject> {
    count += 1;
    const toolCall = { toolCallId: `permission-${count}`, ...objectOf(params.toolCall) };
    const options = optionsOf(params.options);
    // Older Harn agents send no options and put the tool's name elsewhere.
    const bare = params.options === undefined;
    const named = textOf(within(toolCall, 'toolName'));
    const { call, steps } = reader.asked(named ? { name: named, ...toolCall } : toolCall);
    // A snapshot: later updates of the call were not part of the question.
    const { reported } = call;
    const id = questionId(call.id);
    await write(steps);
    if (!bare && onlyLasting(options)) {
      const tool_call_id = id;
      const name = toolNameOf(reported);
      const error = 'the agent offered nothing but a lasting grant, which is not ours to give';
      reader.denied(call);
      await write([
        {
          event: 'tool.requested',
          payload: { tool_call_id, name, kind: 'tool', input: inputOf(reported), effect: 'unknown', evidence: 'asked' },
        },
        { event: 'tool.failed', payload: { tool_call_id, name, status: 'error', error, code: 'lasting_grant_only' } },
      ]);
      return toWireOutcome(options, { kind: 'denied', by: 'tollbridge', reason: error });
    }
    const { sessionId: _, ...asked } = params;
    const title = textOf(within(params, 'toolCall', 'title'));
    const answer: Answer = await sink
      .ask({
        kind: 'approval',
        action: toAction(reported, id, { agent: agentProcess.agentName, cwd: agentProcess.cwd }),
        ...(title && { question: title }),
        ext: { acp: { permission: asked } },
        withdrawn,
      })
      .catch((cause) => {
        // A canceled task asks no more; the protocol has an outcome for that.
        if (signal.aborted) return { kind: 'canceled', reason: 'the work was canceled' } as const;
        throw cause;
      });
    if (answer.kind !== 'approved') reader.denied(call);
    if (answer.kind === 'denied') {
      const text = refusalText(answer);
      if (passesErrorsOn(agentProcess.agentName)) throw new RpcError({ code: POLICY_BLOCK, message: text });
      if (!bare) agentProcess.untold.push(refusalOf(reported.title, text));
    }
    return bare ? bareOutcome(answer) : withReason(toWireOutcome(options, answer), answer);
  }

  async function elicitation({ params, signal: withdrawn }: Asked): Promise<JsonObject> {
    if (params.mode !== undefined && params.mode !== 'form') {
      throw new RpcError({ code: -32602, message: 'only forms are filled in here' });
    }
    count += 1;
    const schema = objectOf(params.requestedSchema);
    const wanted = onlyProperty(schema)?.schema ?? schema;
    const answer = await sink.ask({
      kind: 'input',
      key: `elicitation-${count}`,
      question: textOf(params.message) ?? 'The agent asks for a value.',
      withdrawn,
      ...(wanted && { schema: wanted }),
    });
    if (answer.kind === 'value') return { action: 'accept', content: asContent(answer.value as Json, schema) };
    return { action: answer.kind === 'denied' ? 'decline' : 'cancel' };
  }

  const SERVED: Readonly<Record<string, (asked: Asked) => Promise<Json> | Json>> = {
    'session/request_permission': permission,
    'elicitation/create': elicitation,
    ...(settings.fs && {
      'fs/read_text_file': (asked: Asked) => files.read(asked.params, asked.signal),
      'fs/write_text_file': (asked: Asked) => files.write(asked.params, asked.signal),
    }),
    ...(settings.terminal && {
      [HOST_CALL]: (asked: Asked) => hostCalls(asked.params, asked.signal),
      'terminal/create': (asked: Asked) => terminals.create(asked.params, asked.signal),
      'terminal/output': ({ params }: Asked) => terminals.output(params),
      'terminal/wait_for_exit': (asked: Asked) => terminals.exit(asked.params, asked.signal),
      'terminal/kill': ({ params }: Asked) => terminals.kill(params),
      'terminal/release': ({ params }: Asked) => terminals.release(params),
    }),
  };

  async function settle<T>(work: () => Promise<T> | T): Promise<T> {
    open += 1;
    try {
      return await work();
    } finally {
      open -= 1;
      settledAt = performance.now();
    }
  }

  /** Open questions of this kind, by the agent's id for them: some agents send the same one in two forms. */
  const asking = new Map<string, AbortController>();

  async function answerHarn(reported: JsonObject): Promise<void> {
    const requestId = textOf(reported.requestId);
    if (!requestId || asking.has(requestId)) return;
    const settled = new AbortController();
    asking.set(requestId, settled);
    const withdrawn = settled.signal;
    const question = toHitlAsk(reported, { agent: agentProcess.agentName, cwd: agentProcess.cwd }, withdrawn);
    const answer = await sink.ask(question).finally(() => asking.delete(requestId));
    if (signal.aborted || withdrawn.aborted) return;
    const { sessionId } = agentProcess;
    await agentProcess.peer.request(HITL_RESPOND, { sessionId, ...toHitlResponse(reported, answer) });
    await write(hitlEnded(reported, question, answer));
  }

  return {
    get open() {
      return open;
    },
    get settledAt() {
      return settledAt;
    },
    get held() {
      return held;
    },
    async answer(asked) {
      const { method } = asked;
      const serve = lookup(SERVED, method);
      if (!serve) throw new RpcError({ code: -32601, message: `there is no method ${method.slice(0, 100)} here` });
      // One process has one session: a request that names another, or none, belongs to no task.
      if (asked.params.sessionId !== agentProcess.sessionId) {
        throw new Fault('invalid_request', 'sessionId must be the session this agent works in', {
          param: '/sessionId',
        });
      }
      if (method.startsWith('fs/') || method === 'terminal/create' || method === HOST_CALL) held = true;
      return await settle(() => serve(asked));
    },
    harnSettled: ({ requestId }) => asking.get(asText(requestId))?.abort(),
    harnQuestion(reported) {
      settle(() => answerHarn(reported)).catch((cause) => {
        if (!signal.aborted) log.warn({ err: cause, agent: settings.name }, 'a question could not be settled');
      });
    },
  };
}

/** The reply for Harn agents without options: a plain yes, or a no with its reason. */
function bareOutcome(answer: Answer): JsonObject {
  if (answer.kind === 'approved') return { outcome: { outcome: 'selected' }, granted: true };
  return { granted: false, reason: 'reason' in answer ? (answer.reason ?? answer.kind) : answer.kind };
}

/** A form with one field asks for one value, which approvers may give as a plain value at any door. */
function onlyProperty(schema: JsonObject | undefined): { name: string; schema: JsonObject } | undefined {
  const [first, ...more] = Object.entries(objectOf(schema?.properties) ?? {});
  const about = first && more.length === 0 ? objectOf(first[1]) : undefined;
  return first && about ? { name: first[0], schema: about } : undefined;
}

function asContent(value: Json, schema: JsonObject | undefined): JsonObject {
  const only = onlyProperty(schema);
  if (only) return { [only.name]: value };
  return objectOf(value) ?? { value };
}
