/**
 * Submits a task to a remote exactly once, across failures and restarts: finds or creates a workspace, one remote session for
 * each of ours, and the task under a key that both sides can derive again.
 */
import { Fault, type JsonObject, type Logger, type SessionInputsView, type Work } from '../../../src/index.ts';
import { isLoopbackName } from '../../../src/transport/http/origin.ts';
import { isPassing, persist, RemoteRefusal, segment } from '../../../src/transport/outbound/remote.ts';
import { taskTrace } from '../../../src/transport/outbound/trace-context.ts';
import type { BackendSettings } from './config.ts';
import type { HarnRemote } from './http.ts';
import { type RemoteTask, toWireInput } from './translate.ts';
import { readList } from './watch.ts';

export interface GiverDeps {
  readonly remote: HarnRemote;
  readonly settings: BackendSettings;
  readonly log: Logger;
}

export interface Submitter {
  /** The remote task: submitted now, or found again when it was submitted before a restart. */
  give(work: Work, signal: AbortSignal): Promise<RemoteTask>;
  /** Sends the inputs of a session to the remote, if it has the session. */
  sendInputs(sessionId: string, inputs: SessionInputsView): Promise<void>;
  release(sessionId: string): void;
}

const MOST_HISTORY = 200;

export function createSubmitter({ remote: shared, settings, log }: GiverDeps): Submitter {
  const sessions = new Map<string, string>();
  let discovered: Promise<boolean> | undefined;
  /** Whether a request with a key is done only once. Others are never sent twice when in doubt. */
  let keys = true;

  const kept = <T>(request: () => Promise<T>, signal: AbortSignal) => persist(request, signal, settings.silenceMs);

  function through(remote: HarnRemote): Submitter['give'] {
    /** True for a server that implements the protocol; some implement a dialect of it and ignore idempotency keys. */
    async function discover(signal: AbortSignal): Promise<boolean> {
      const { object } = (await kept(() => remote.discover(signal), signal)) ?? {};
      if (object !== 'protocol_discovery') {
        log.warn({ remote: remote.base.origin, object }, 'the remote speaks a dialect: it keeps no idempotency keys');
        return false;
      }
      return true;
    }

    /** Not aborted by the signal: the request may have arrived, and then its answer is needed to cancel the task. */
    async function make<T>(path: string, body: object, key: string, signal: AbortSignal): Promise<T> {
      const request = () => remote.call<T>('POST', path, { body, key });
      return keys && remote.keyed('POST', path) ? await kept(request, signal) : await request();
    }

    async function workspace(signal: AbortSignal): Promise<string | undefined> {
      if (settings.workspaceId) return settings.workspaceId;
      try {
        const list = await kept(() => remote.call<unknown>('GET', '/v1/workspaces?limit=1', { signal }), signal);
        const [first] = readList(list).data as { id?: string }[];
        if (first?.id) return first.id;
        const body = { name: 'tollbridge', root: 'tollbridge://remote' };
        return (await make<{ id: string }>('/v1/workspaces', body, 'tollbridge-workspace', signal)).id;
      } catch (cause) {
        // Not every server has workspaces; one that requires them will refuse the next request.
        if (cause instanceof RemoteRefusal && !isPassing(cause)) return undefined;
        throw cause;
      }
    }

    async function sessionFor(work: Work, signal: AbortSignal): Promise<string> {
      const known = sessions.get(work.session.id);
      if (known) return known;
      const before = await standing(work, signal);
      if (before) {
        sessions.set(work.session.id, before);
        return before;
      }
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
      await sendHistory(work, made.id, signal);
      sessions.set(work.session.id, made.id);
      return made.id;
    }

    /** The session with our label. Looked up only where an idempotency key would not find it. */
    async function standing(work: Work, signal: AbortSignal): Promise<string | undefined> {
      if (!keys || remote.keyed('POST', '/v1/sessions')) return undefined;
      const list = await kept(() => remote.call<unknown>('GET', '/v1/sessions?limit=200', { signal }), signal);
      const found = (readList(list).data as { id?: unknown; metadata?: JsonObject }[]).find(({ metadata }) => {
        const { session_id } = (metadata?.tollbridge ?? {}) as JsonObject;
        return session_id === work.session.id;
      });
      return typeof found?.id === 'string' ? found.id : undefined;
    }

    /** Sends the messages from before the remote was involved. Each has a key of its own, so that none is sent twice. */
    async function sendHistory(work: Work, sessionId: string, signal: AbortSignal): Promise<void> {
      const list = await kept(
        () => remote.call<unknown>('GET', `/v1/sessions/${segment(sessionId)}/messages?limit=1`, { signal }),
        signal,
      );
      if (readList(list).data.length > 0) return;
      let sentAt = 0;
      for await (const { id, task_id, ...message } of work.transcript()) {
        if (task_id === work.task.id) continue;
        sentAt += 1;
        if (sentAt > MOST_HISTORY) return;
        const body = { message: toWireInput(message as JsonObject) };
        await make(`/v1/sessions/${segment(sessionId)}/messages`, body, `tollbridge-${id}`, signal);
      }
    }

    async function submit(work: Work, sessionId: string, signal: AbortSignal): Promise<RemoteTask> {
      const caller = await work.reference?.('harn');
      const body = {
        input: toWireInput(work.task.input as JsonObject),
        ...(settings.agent && { agent: settings.agent }),
        metadata: { tollbridge: { task_id: work.task.id, ...(caller && { caller }) } },
      };
      return await make<RemoteTask>(
        `/v1/sessions/${segment(sessionId)}/tasks`,
        body,
        `tollbridge-${work.task.id}`,
        signal,
      );
    }

    /** The task that carries our name, if the remote has it. */
    async function find(work: Work, sessionId: string, signal: AbortSignal): Promise<RemoteTask | undefined> {
      const path = `/v1/tasks?limit=200&session_id=${sessionId}`;
      const { data } = readList(await kept(() => remote.call<unknown>('GET', path, { signal }), signal));
      return (data as RemoteTask[]).find((task) => {
        const { task_id, caller } = (task.metadata?.tollbridge ?? {}) as JsonObject & { caller?: JsonObject };
        return (caller?.task_id ?? task_id) === work.task.id;
      });
    }

    async function again(work: Work, sessionId: string, signal: AbortSignal): Promise<RemoteTask> {
      const found = await find(work, sessionId, signal);
      if (found) return found;
      // With keys, submitting again is idempotent. Without, the task may have run and been forgotten, which cannot be known.
      if (keys) return await submit(work, sessionId, signal);
      throw new Fault('upstream_unavailable', 'whether the remote was given this task before the restart is unknown');
    }

    return async (work, signal) => {
      discovered ??= discover(signal);
      try {
        keys = await discovered;
      } catch (cause) {
        discovered = undefined;
        throw cause;
      }
      const sessionId = await sessionFor(work, signal);
      // Before the task: the agent there may need them at once.
      if (work.inputs && work.inputs.revision > 0) await sendInputs(sessionId, work.inputs);
      const submitted = await (work.resumed ? again(work, sessionId, signal) : submit(work, sessionId, signal)).catch(
        async (cause) => {
          // The key was used with another body, as when secrets were removed from our record of it.
          const found = isReused(cause) ? await find(work, sessionId, signal) : undefined;
          if (!found) throw cause;
          return found;
        },
      );
      if (typeof submitted?.id !== 'string' || typeof submitted.status !== 'string') {
        throw new Fault('upstream_unavailable', 'the remote took the task without giving it an id');
      }
      return submitted;
    };
  }

  /** The whole set each time, under a revision, so that a delayed request cannot bring back a removed value. */
  async function sendInputs(remoteSession: string, inputs: SessionInputsView): Promise<void> {
    const operation = shared.revision.operationOf('updateSessionInputs');
    const body = {
      kind: 'sync',
      snapshot: { sourceId: 'tollbridge', revision: inputs.revision, inputs: inputs.grants(), redactions: [] },
    };
    if (!operation) {
      if (inputs.names().length === 0) return;
      throw new Fault('upstream_unavailable', `the remote ${settings.name} takes no private inputs`);
    }
    if (shared.base.protocol !== 'https:' && !isLoopbackName(shared.base.host)) {
      throw new Fault('upstream_unavailable', `private inputs are sent over https only, and ${settings.name} is not`);
    }
    try {
      await shared.call('POST', operation.path.replace('{session_id}', segment(remoteSession)), { body });
    } catch (cause) {
      // The remote's words may repeat the request; only its status is passed on.
      const status = cause instanceof RemoteRefusal ? `: status ${cause.status}` : '';
      throw new Fault('upstream_unavailable', `the remote ${settings.name} did not take the private inputs${status}`);
    }
  }

  return {
    give: (work, signal) => through(shared.within(taskTrace(work.task)))(work, signal),
    async sendInputs(sessionId, inputs) {
      const remoteSession = sessions.get(sessionId);
      if (remoteSession) await sendInputs(remoteSession, inputs);
    },
    release: (sessionId) => sessions.delete(sessionId),
  };
}

function isReused(cause: unknown): boolean {
  return cause instanceof RemoteRefusal && cause.code === 'idempotency_key_reused';
}
