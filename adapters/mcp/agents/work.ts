/**
 * Work that MCP clients give to agents: submitted, followed to its end, and its questions put to the client. All of its state is
 * in the log; a client that was disconnected finds the work as it is.
 */
import {
  type Actor,
  type AskRecord,
  asFault,
  type Bridge,
  type CallerOfCall,
  type CoreEvent,
  type Dialog,
  dialogFor,
  emptyTaskView,
  evolve,
  Fault,
  isObject,
  isTerminal,
  type JsonObject,
  type Logger,
  type Outcome,
  type Row,
  type Task,
  type TaskView,
} from '../../../src/index.ts';
import { receiptReference } from '../../../src/transport/outbound/receipt-reference.ts';
import { accountMeta, isFromGateway } from '../gateways.ts';
import { createApprovals } from '../server/approvals.ts';
import type { CallTasks } from '../server/call-tasks.ts';
import { type Caller, canFillForms, scopeOf } from '../server/caller.ts';
import type { Running } from '../server/suspended-calls.ts';
import { related } from '../tasks/words.ts';
import { fromForm, stateOf, toForm, toResult } from './result.ts';

export interface AgentWork {
  /** `from` is the call of another gateway that asks for the work; the two receipts then name each other. */
  give(agent: string, message: string, about: SubmitOptions, caller: Caller): Promise<Task>;
  /** Another principal's work is not found. */
  find(taskId: unknown, caller: Caller): Promise<Task>;
  list(caller: Caller, after: string | undefined): Promise<{ data: readonly Task[]; next: string | undefined }>;
  /** Waits until it has ended; `onEvent` receives every event, and questions the client can answer are put to it. */
  follow(task: Task, caller: Caller, running: Running, onEvent: (event: CoreEvent) => void): Promise<JsonObject>;
  result(task: Task, caller: Caller): Promise<JsonObject>;
  questions(task: Task, caller: Caller): Promise<readonly AskRecord[]>;
  /** A question as this caller is shown it: whole only where it may answer. */
  dialog(ask: AskRecord, caller: Caller): Promise<Dialog>;
  /** The answer from a form or from a tool call; the latter is the model's answer and never a person's. */
  answer(ask: AskRecord, said: Said, caller: Caller, by: 'form' | 'tool'): Promise<void>;
  cancel(task: Task, reason: string, caller: Caller): Promise<void>;
}

interface SubmitOptions {
  readonly sessionId: string | undefined;
  readonly from: CallerOfCall | undefined;
}

interface Said {
  readonly value?: unknown;
  readonly approved?: boolean;
  /** With a yes: the arguments to run instead. */
  readonly arguments?: JsonObject;
  readonly reason?: string;
}

export function createWork(bridge: Bridge, callTasks: CallTasks, deps: { readonly log: Logger }): AgentWork {
  const approvals = createApprovals(bridge, deps);

  async function find(taskId: unknown, { actor }: Caller): Promise<Task> {
    const absent = new Fault('not_found', 'Task not found');
    if (typeof taskId !== 'string') throw absent;
    const task = await bridge.view<Task & Row>(actor, 'task', taskId).catch((cause) => {
      throw asFault(cause).kind === 'not_found' ? absent : cause;
    });
    // The task is in the same workspace but another principal's: knowing its id gives no right to it.
    if (task.created_by !== actor.id || !task.assigned_agent_id) throw absent;
    return task;
  }

  async function questions(task: Task, { actor }: Caller): Promise<readonly AskRecord[]> {
    const where = { task_id: task.id, state: 'open' };
    return (await bridge.list<AskRecord & Row>(actor, { object: 'ask', where, limit: 50 })).data;
  }

  async function result({ id }: Task, { actor }: Caller): Promise<JsonObject> {
    const task = await bridge.view<Task & Row>(actor, 'task', id);
    const view = emptyTaskView();
    for await (const event of bridge.events(actor, { stream: { of: 'task', id } })) evolve(view, event);
    // Events may be kept for a shorter time than the outcome.
    if (!view.outcome && task.outcome_id) {
      view.outcome = await bridge.view<Outcome & Row>(actor, 'outcome', task.outcome_id).catch(() => undefined);
    }
    return await answered(task, view, actor);
  }

  /** Another gateway's call is answered with the receipt: the task ended together with it. */
  async function answered(task: Task, view: TaskView, actor: Actor): Promise<JsonObject> {
    const result = toResult(task, view);
    if (!isFromGateway(task)) return result;
    const receipt = task.receipt_id ? await receiptReference(bridge, actor, task.receipt_id) : undefined;
    return { ...result, _meta: accountMeta({ taskId: task.id, receipt }) };
  }

  /** Puts one question to the client while its work is followed. */
  async function put(askId: string, task: Task, caller: Caller, running: Running): Promise<void> {
    const ask = await bridge.view<AskRecord & Row>(caller.actor, 'ask', askId);
    if (ask.state !== 'open') return;
    const input: Running['input'] = (requests) =>
      running.input(
        Object.fromEntries(
          Object.entries(requests).map(([key, { method, params = {} }]) => [
            key,
            { method, params: caller.era === 'legacy' ? related(params, task.id) : params },
          ]),
        ),
      );
    if (ask.kind === 'approval') return await approvals.ask(caller, ask.id, input);
    if (!canFillForms(caller.capabilities)) return;
    const key = `tollbridge_input_${ask.id}`;
    const { inputResponses } = await input({ [key]: { method: 'elicitation/create', params: toForm(ask) } });
    const said = inputResponses[key];
    if (!isObject(said)) return;
    if (said.action === 'accept' && isObject(said.content))
      return await answer(ask, { value: fromForm(ask, said.content) }, caller, 'form');
    await answer(ask, { approved: false, reason: 'declined at the client' }, caller, 'form');
  }

  function dialog(ask: AskRecord, { actor, person }: Caller): Promise<Dialog> {
    return dialogFor(bridge, person ? { ...person, interactive: true } : actor, ask);
  }

  async function answer(...[ask, said, caller, how]: Parameters<AgentWork['answer']>): Promise<void> {
    const { actor, person } = caller;
    const { value, approved, reason, arguments: changed } = said;
    if (approved && ask.kind === 'approval') {
      const { whole, text } = await dialog(ask, caller);
      if (!whole) throw new Fault('permission_denied', text);
    }
    const body = {
      ask_id: ask.id,
      ...(value !== undefined && { value: value as never }),
      ...(approved !== undefined && { approved }),
      ...(changed && { arguments: changed }),
      ...(reason !== undefined && { reason }),
    };
    // A form is a person's answer where the credential is a person's, and a program's everywhere else.
    const by: Actor = person && how === 'form' ? { ...person, interactive: true } : actor;
    await bridge.submit({ kind: 'ask.answer', actor: by, body });
  }

  return {
    find,
    questions,
    dialog,
    result,
    answer,
    async give(agent, message, { sessionId, from }, caller) {
      const { actor } = caller;
      const home = sessionId ? { session_id: sessionId } : { session: await callTasks.home(caller) };
      const input = { role: 'user', parts: [{ type: 'text', text: message, visibility: 'public' }] };
      const metadata = from && { tollbridge: { caller: { ...from } } };
      const body = { ...home, input, agent, ...(metadata && { metadata }) };
      const { resource } = await bridge.submit({ kind: 'task.submit', actor, body });
      return resource as Task;
    },
    async list({ actor }, after) {
      const query = { object: 'task', newestFirst: true, limit: 50, ...(after && { after }) };
      const { data, next } = await bridge.list<Task & Row>(actor, query);
      return { data: data.filter((task) => task.created_by === actor.id && task.assigned_agent_id), next };
    },
    async follow(task, caller, running, onEvent) {
      const asking = new Set<Promise<void>>();
      const view = emptyTaskView();
      for await (const event of bridge.follow(caller.actor, { stream: { of: 'task', id: task.id } }, running.signal)) {
        onEvent(event);
        const { task: now } = evolve(view, event);
        if (event.event === 'vendor.tollbridge.ask_opened') {
          const { ask } = event.payload as { ask: AskRecord };
          const put1 = put(ask.id, task, caller, running).catch((cause) => {
            deps.log.info(
              { err: cause, ask: ask.id, by: scopeOf(caller.actor) },
              'a question was not answered at a client',
            );
          });
          asking.add(put1);
          put1.finally(() => asking.delete(put1));
        }
        if (now && isTerminal(now.status)) return await answered(now, view, caller.actor);
      }
      throw new Fault('client_closed', 'the client no longer follows the work');
    },
    async cancel(task, reason, { actor }) {
      if (['COMPLETED', 'FAILED', 'CANCELED'].includes(stateOf(task))) return;
      await bridge.submit({ kind: 'task.cancel', actor, body: { task_id: task.id, reason } }).catch((cause) => {
        if (asFault(cause).kind !== 'conflict') throw cause;
      });
    },
  };
}
