/**
 * Tools that the other end of a socket runs. To the bridge they are a tool server like any other, so every call is decided
 * and written down before it is asked for; to the host a call is a request it answers. They are there for the session
 * they were offered in and nobody else knows of them. What a host says its tools do to the world is not believed.
 */
import {
  type Action,
  type Actor,
  Fault,
  type Ids,
  type JsonObject,
  type Skill,
  type ToolBackend,
  type ToolResult,
} from '../../src/index.ts';

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
  /** `again`: someone was asked this before, perhaps this very host, and may have done it. */
  ask(request: HostRequest, again: boolean): void;
  /** Nobody waits for this any more. */
  withdraw(requestId: string): void;
}

export interface Offer {
  replace(tools: readonly HostedTool[]): void;
  close(): void;
}

export interface Hosts {
  readonly backend: ToolBackend;
  offer(host: Host): Offer;
  /** This host was asked this. */
  knows(host: Host, requestId: string): boolean;
  /** The answer of a host that was asked; late when nobody waits for it any more. */
  answer(host: Host, requestId: string, result: ToolResult): 'taken' | 'late';
}

interface Pending {
  readonly request: HostRequest;
  readonly action: Action;
  readonly asked: Set<Host>;
  /** Fires when there was nobody to run it for too long. */
  alone: NodeJS.Timeout | undefined;
  settle(result: ToolResult): void;
}

interface Shelf {
  readonly host: Host;
  tools: readonly Skill[];
}

export interface HostsDeps {
  readonly ids: Ids;
  /** How long a call, and the knowledge of a tool, outlives the connection of the only host that has it. */
  readonly patienceMs: number;
}

const MADE = '2026-01-01T00:00:00.000Z';
/** Requests that are over and whose late answers can still be told apart from nonsense. */
const REMEMBERED = 1000;

export function createHosts({ ids, patienceMs }: HostsDeps): Hosts {
  const shelves = new Set<Shelf>();
  const live = new Set<Host>();
  const pending = new Map<string, Pending>();
  const over = new Map<string, ReadonlySet<Host>>();

  const serves = ({ host, tools }: Shelf, { tool, session_id, task_id }: Action) =>
    host.session_id === session_id &&
    (host.task_id === undefined || host.task_id === task_id) &&
    tools.some(({ name }) => name === tool);

  const connected = (action: Action) => [...shelves].find((shelf) => live.has(shelf.host) && serves(shelf, action));

  function hand(one: Pending): void {
    const shelf = connected(one.action);
    if (!shelf) {
      one.alone ??= setTimeout(() => {
        const error = `the host that runs ${one.action.tool} has left; it may have run it`;
        one.settle({ status: 'error', output: null, error, code: 'host_gone' });
      }, patienceMs).unref();
      return;
    }
    clearTimeout(one.alone);
    one.alone = undefined;
    const again = one.asked.size > 0;
    one.asked.add(shelf.host);
    shelf.host.ask(one.request, again);
  }

  function call(action: Action, signal: AbortSignal): Promise<ToolResult> {
    const { task_id, tool = '', arguments: args, tool_call_id } = action;
    if (!task_id || ![...shelves].some((shelf) => serves(shelf, action))) {
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
          if (over.size > REMEMBERED) over.delete(over.keys().next().value as string);
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
        const found = [...shelves].filter(({ host }) => host.session_id === sessionId).flatMap(({ tools }) => tools);
        return [...new Map(found.map((skill) => [skill.name, skill])).values()];
      },
      call,
    },

    offer(host) {
      const shelf: Shelf = { host, tools: [] };
      shelves.add(shelf);
      live.add(host);
      return {
        replace(tools) {
          shelf.tools = tools.map(skillOf);
          for (const one of pending.values()) {
            if (serves(shelf, one.action) && ![...one.asked].some((asked) => live.has(asked))) hand(one);
          }
        },
        close() {
          live.delete(host);
          // Whoever takes its place may have to be waited for, so what it offered is still known for a while.
          setTimeout(() => shelves.delete(shelf), patienceMs).unref();
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

/** What a host answers, as the log knows results. */
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
