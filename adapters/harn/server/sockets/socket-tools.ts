/**
 * Tools that the client of a socket runs. To the bridge they are a tool server like any other, so every call is decided and
 * logged before it is sent; to the host a call is a request that it answers. They exist only in the session they were offered
 * in. The effects that a host declares for its tools are not believed.
 */
import {
  type Action,
  type Actor,
  Fault,
  type Ids,
  type JsonObject,
  LruMap,
  type Skill,
  type ToolBackend,
  type ToolResult,
} from '../../../../src/index.ts';

export const HOST_SERVER = 'host';

/** A tool as its host describes it. */
export interface HostedTool {
  readonly name: string;
  readonly description?: string;
  readonly input_schema?: JsonObject;
  readonly annotations?: JsonObject;
}

export interface HostRequest {
  readonly id: string;
  readonly task_id: string;
  readonly payload: JsonObject;
}

/** One connection that runs tools. */
export interface Host {
  readonly actor: Actor;
  readonly session_id: string;
  /** Absent: for every task of the session. */
  readonly task_id?: string;
  /** `again`: the request was sent before, perhaps to this host, and may have been executed. */
  ask(request: HostRequest, again: boolean): void;
  /** The request is no longer waited for. */
  withdraw(requestId: string): void;
}

export interface ToolRegistration {
  replace(tools: readonly HostedTool[]): void;
  close(): void;
}

export interface Hosts {
  readonly backend: ToolBackend;
  register(host: Host): ToolRegistration;
  /** This host was asked this. */
  knows(host: Host, requestId: string): boolean;
  /** The answer of a host that was asked; late when it is no longer waited for. */
  answer(host: Host, requestId: string, result: ToolResult): 'taken' | 'late';
}

interface Pending {
  readonly request: HostRequest;
  readonly action: Action;
  readonly asked: Set<Host>;
  /** Fires when no host was connected to run it for too long. */
  alone: NodeJS.Timeout | undefined;
  settle(result: ToolResult): void;
}

interface ToolSet {
  readonly host: Host;
  tools: readonly Skill[];
}

export interface HostsDeps {
  readonly ids: Ids;
  /** How long a call, and the knowledge of a tool, outlives the connection of the only host that has it. */
  readonly timeoutMs: number;
}

const MADE = '2026-01-01T00:00:00.000Z';
/** Ended requests that are remembered, so that late answers can be distinguished from invalid ones. */
const REMEMBERED = 1000;

export function createHosts({ ids, timeoutMs }: HostsDeps): Hosts {
  const toolSets = new Set<ToolSet>();
  const live = new Set<Host>();
  const pending = new Map<string, Pending>();
  const over = new LruMap<string, ReadonlySet<Host>>(REMEMBERED);

  const serves = ({ host, tools }: ToolSet, { tool, session_id, task_id }: Action) =>
    host.session_id === session_id &&
    (host.task_id === undefined || host.task_id === task_id) &&
    tools.some(({ name }) => name === tool);

  const connected = (action: Action) =>
    [...toolSets].find((toolSet) => live.has(toolSet.host) && serves(toolSet, action));

  function hand(one: Pending): void {
    const toolSet = connected(one.action);
    if (!toolSet) {
      one.alone ??= setTimeout(() => {
        const error = `the host that runs ${one.action.tool} has left; it may have run it`;
        one.settle({ status: 'error', output: null, error, code: 'host_gone' });
      }, timeoutMs).unref();
      return;
    }
    clearTimeout(one.alone);
    one.alone = undefined;
    const again = one.asked.size > 0;
    one.asked.add(toolSet.host);
    toolSet.host.ask(one.request, again);
  }

  function call(action: Action, signal: AbortSignal): Promise<ToolResult> {
    const { task_id, tool = '', arguments: args, tool_call_id } = action;
    if (!task_id || ![...toolSets].some((toolSet) => serves(toolSet, action))) {
      return Promise.resolve({ status: 'error', output: null, error: `no host runs ${tool} for this task` });
    }
    return new Promise((resolve) => {
      const id = ids.next('hostcall');
      const one: Pending = {
        request: { id, task_id, payload: { tool, arguments: args, ...(tool_call_id && { tool_call_id }) } },
        action,
        asked: new Set(),
        alone: undefined,
        settle(result) {
          clearTimeout(one.alone);
          signal.removeEventListener('abort', stop);
          pending.delete(id);
          over.set(id, one.asked);
          resolve(result);
        },
      };
      const stop = () => {
        for (const host of one.asked) if (live.has(host)) host.withdraw(id);
        one.settle({ status: 'error', output: null, error: 'stopped while the host ran it', code: 'canceled' });
      };
      pending.set(id, one);
      signal.addEventListener('abort', stop, { once: true });
      if (signal.aborted) stop();
      else hand(one);
    });
  }

  return {
    backend: {
      name: HOST_SERVER,
      async list(sessionId) {
        if (sessionId === undefined) return [];
        const found = [...toolSets].filter(({ host }) => host.session_id === sessionId).flatMap(({ tools }) => tools);
        return [...new Map(found.map((skill) => [skill.name, skill])).values()];
      },
      call,
    },

    register(host) {
      const toolSet: ToolSet = { host, tools: [] };
      toolSets.add(toolSet);
      live.add(host);
      return {
        replace(tools) {
          toolSet.tools = tools.map(skillOf);
          for (const one of pending.values()) {
            if (serves(toolSet, one.action) && ![...one.asked].some((asked) => live.has(asked))) hand(one);
          }
        },
        close() {
          live.delete(host);
          // A replacement may connect later, so the tools of this host stay known for a while.
          setTimeout(() => toolSets.delete(toolSet), timeoutMs).unref();
          for (const one of pending.values()) if (one.asked.has(host)) hand(one);
        },
      };
    },

    knows: (host, requestId) => (pending.get(requestId)?.asked ?? over.get(requestId))?.has(host) ?? false,

    answer(host, requestId, result) {
      const one = pending.get(requestId);
      if (!one?.asked.has(host)) return 'late';
      one.settle({ ...result, ext: { harn: { host: host.actor.id, request_id: requestId } } });
      return 'taken';
    },
  };
}

function skillOf({ name, description = '', input_schema, annotations }: HostedTool): Skill {
  return {
    id: `skill_host_${name}`,
    object: 'skill',
    created_at: MADE,
    updated_at: MADE,
    metadata: annotations ? { annotations } : {},
    name,
    description,
    version: '1',
    input_schema: input_schema ?? { type: 'object' },
    output_schema: null,
    source: HOST_SERVER,
  };
}

/** A host's answer as a tool result. */
export function toCoreResult(frame: JsonObject): ToolResult {
  if (frame.approved === false) {
    const error = typeof frame.reason === 'string' ? frame.reason : 'the host did not run it';
    return { status: 'error', output: frame.answer ?? null, error };
  }
  if (frame.answer === undefined) {
    throw new Fault('invalid_request', 'the answer to a tool request is missing', { param: '/answer' });
  }
  return { status: 'ok', output: frame.answer };
}
