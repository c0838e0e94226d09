/**
 * Giving a task to a remote so that it is given once, whatever happens in between: a place to work, a session for each
 * of ours, and the task under a name that both sides can find again.
 */
import { Fault, type JsonObject, type Logger, PROTOCOL_VERSION, type Work } from '../../src/index.ts';
import { isPassing, Refusal, type Remote } from '../../src/wire/remote.ts';
import type { BackendSettings } from './client-config.ts';
import { type RemoteTask, toWireInput } from './client-translate.ts';
import { readList } from './client-watch.ts';

export interface GiverDeps {
  readonly remote: Remote;
  readonly settings: BackendSettings;
  readonly log: Logger;
  pause(ms: number, signal: AbortSignal): Promise<void>;
}

export interface Giver {
  /** The remote task: given now, or found again when it was given before a crash of ours. */
  give(work: Work, signal: AbortSignal): Promise<RemoteTask>;
}

const TRIES = 6;
const MOST_HISTORY = 200;

export function createGiver({ remote, settings, log, pause }: GiverDeps): Giver {
  const sessions = new Map<string, string>();
  let discovered: Promise<boolean> | undefined;
  /** Whether a request with a key is done only once. Others are never sent twice when in doubt. */
  let keys = true;

  /** True for a server that keeps to the protocol; some speak a dialect of it and keep no keys. */
  async function discover(signal: AbortSignal): Promise<boolean> {
    const found = await persist(() => remote.call<JsonObject>('GET', '/v1', { signal }), signal);
    const { object, supported_versions } = found ?? {};
    if (object !== 'protocol_discovery') {
      log.warn({ remote: remote.base.origin, object }, 'the remote speaks a dialect: it keeps no idempotency keys');
      return false;
    }
    if (Array.isArray(supported_versions) && !supported_versions.includes(PROTOCOL_VERSION)) {
      throw new Fault('upstream_unavailable', `the remote does not speak ${PROTOCOL_VERSION}`);
    }
    return true;
  }

  /** Tries again while that may help; only for what may be sent twice. */
  async function persist<T>(request: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const began = performance.now();
    for (let tries = 1, wait = 250; ; tries += 1, wait *= 2) {
      try {
        return await request();
      } catch (cause) {
        const enough = tries >= TRIES || performance.now() - began > settings.silenceMs;
        if (signal.aborted || !isPassing(cause) || enough) throw cause;
        const asked = cause instanceof Refusal ? cause.retryAfterMs : undefined;
        await pause(Math.min(asked ?? wait, 10_000), signal);
      }
    }
  }

  /** Not cut short by the signal: what was sent may have arrived, and then its answer is needed to stop it. */
  async function make<T>(path: string, body: object, key: string, signal: AbortSignal): Promise<T> {
    const request = () => remote.call<T>('POST', path, { body, key });
    return keys ? await persist(request, signal) : await request();
  }

  async function workspace(signal: AbortSignal): Promise<string | undefined> {
    if (settings.workspaceId) return settings.workspaceId;
    try {
      const list = await persist(() => remote.call<unknown>('GET', '/v1/workspaces?limit=1', { signal }), signal);
      const [first] = readList(list).data as { id?: string }[];
      if (first?.id) return first.id;
      const body = { name: 'tollbridge', root: 'tollbridge://remote' };
      return (await make<{ id: string }>('/v1/workspaces', body, 'tollbridge-workspace', signal)).id;
    } catch (cause) {
      // Not every server has workspaces; those that need one will say so.
      if (cause instanceof Refusal && !isPassing(cause)) return undefined;
      throw cause;
    }
  }

  async function sessionFor(work: Work, signal: AbortSignal): Promise<string> {
    const known = sessions.get(work.session.id);
    if (known) return known;
    const workspace_id = await workspace(signal);
    const body = {
      ...(workspace_id && { workspace_id }),
      ...(settings.personaId && { persona_id: settings.personaId }),
      metadata: { tollbridge: { session_id: work.session.id } },
    };
    // The same key each time: after a restart of ours the remote answers with the session we already have.
    const key = `tollbridge-${work.session.id}`;
    const made = await make<{ id: string; transcript?: unknown }>('/v1/sessions', body, key, signal);
    if (typeof made?.id !== 'string')
      throw new Fault('upstream_unavailable', 'the remote opened a session without an id');
    await tellHistory(work, made.id, signal);
    sessions.set(work.session.id, made.id);
    return made.id;
  }

  /** What was said before the remote came in. Each message has a key of its own, so that none is told twice. */
  async function tellHistory(work: Work, sessionId: string, signal: AbortSignal): Promise<void> {
    const list = await persist(
      () => remote.call<unknown>('GET', `/v1/sessions/${sessionId}/messages?limit=1`, { signal }),
      signal,
    );
    if (readList(list).data.length > 0) return;
    let told = 0;
    for await (const { id, task_id, ...message } of work.transcript()) {
      if (task_id === work.task.id) continue;
      told += 1;
      if (told > MOST_HISTORY) return;
      const body = { message: toWireInput(message as unknown as JsonObject) };
      await make(`/v1/sessions/${sessionId}/messages`, body, `tollbridge-${id}`, signal);
    }
  }

  async function submit(work: Work, sessionId: string, signal: AbortSignal): Promise<RemoteTask> {
    const body = {
      input: toWireInput(work.task.input as JsonObject),
      ...(settings.agent && { agent: settings.agent }),
      metadata: { tollbridge: { task_id: work.task.id } },
    };
    return await make<RemoteTask>(`/v1/sessions/${sessionId}/tasks`, body, `tollbridge-${work.task.id}`, signal);
  }

  /** The task that carries our name, if the remote has it. */
  async function find(work: Work, sessionId: string, signal: AbortSignal): Promise<RemoteTask | undefined> {
    const path = `/v1/tasks?limit=200&session_id=${sessionId}`;
    const { data } = readList(await persist(() => remote.call<unknown>('GET', path, { signal }), signal));
    return (data as RemoteTask[]).find((task) => {
      const { task_id } = (task.metadata?.tollbridge ?? {}) as JsonObject;
      return task_id === work.task.id;
    });
  }

  async function again(work: Work, sessionId: string, signal: AbortSignal): Promise<RemoteTask> {
    const found = await find(work, sessionId, signal);
    if (found) return found;
    // With keys, giving it again gives it once. Without, it may have been done and forgotten: nobody can tell.
    if (keys) return await submit(work, sessionId, signal);
    throw new Fault('upstream_unavailable', 'whether the remote was given this task before the restart is unknown');
  }

  return {
    async give(work, signal) {
      discovered ??= discover(signal);
      try {
        keys = await discovered;
      } catch (cause) {
        discovered = undefined;
        throw cause;
      }
      const sessionId = await sessionFor(work, signal);
      const given = await (work.resumed ? again(work, sessionId, signal) : submit(work, sessionId, signal)).catch(
        async (cause) => {
          // The key was used with other words, as when secrets were taken out of our record of them.
          const found = isReused(cause) ? await find(work, sessionId, signal) : undefined;
          if (!found) throw cause;
          return found;
        },
      );
      if (typeof given?.id !== 'string' || typeof given.status !== 'string') {
        throw new Fault('upstream_unavailable', 'the remote took the task without giving it an id');
      }
      return given;
    },
  };
}

function isReused(cause: unknown): boolean {
  return cause instanceof Refusal && cause.code === 'idempotency_key_reused';
}
