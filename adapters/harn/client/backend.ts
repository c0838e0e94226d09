/**
 * A remote Harness as an agent. The backend submits a task to it, follows it to its end, relays questions and answers, steers
 * it and cancels it. The remote acted elsewhere, so its account of its acts is recorded as its claim.
 */
import type { AgentBackend, JsonObject, Run } from '../../../src/index.ts';
import { RemoteRefusal, segment } from '../../../src/transport/outbound/remote.ts';
import { taskTrace } from '../../../src/transport/outbound/trace-context.ts';
import { type BackendDeps, backendSettingsOf, type HarnBackendConfig } from './config.ts';
import { type FollowContext, follow } from './follow.ts';
import { createHarnRemote } from './http.ts';
import { createSubmitter } from './submit.ts';
import type { RemoteTask } from './translate.ts';

export function harnBackend(config: HarnBackendConfig, deps: BackendDeps): AgentBackend {
  const settings = backendSettingsOf(config);
  const remote = createHarnRemote({
    base: settings.base,
    requestMs: settings.requestMs,
    token: async () => (settings.secret ? await deps.secret(settings.secret) : undefined),
  });
  const submitter = createSubmitter({ remote, settings, log: deps.log });
  /** The remote's description of itself; filled in once it was asked. */
  const about: { catalog?: JsonObject } = {};

  /** Its catalog, where the revision in use has one. A remote without one, or that does not show it, works all the same. */
  async function learn(): Promise<void> {
    const operation = remote.revision.operationOf('getProviderCatalog');
    if (about.catalog || !operation) return;
    const found = await remote.call<JsonObject | undefined>('GET', operation.path).catch(() => undefined);
    if (found) about.catalog = found;
  }

  return {
    name: settings.name,
    about,
    // The remote has the task under a key that we can derive again, so the task survives a restart of the gateway.
    abilities: { resume: true, evidence: 'observed', steer: true, inputs: true },
    async start(work, sink, signal) {
      const context: FollowContext = {
        settings,
        remote: remote.within(taskTrace(work.task)),
        deps,
        work,
        sink,
        signal,
      };
      const submitted = submitter.give(work, signal);
      submitted.then(learn).catch(() => {});
      return startRun(context, submitted);
    },
    inputsChanged: (sessionId, inputs) => submitter.sendInputs(sessionId, inputs),
    release: async (sessionId) => submitter.release(sessionId),
  };
}

function startRun(context: FollowContext, submitted: Promise<RemoteTask>): Run {
  let turn: Promise<unknown> = submitted.catch(() => {});
  return {
    done: submitted.then((task) => follow(context, task)),
    steer(message) {
      turn = turn
        .then(async () => sendMessage(context, await submitted, message))
        .catch((cause) =>
          context.deps.log.warn(
            { err: cause, remote: context.settings.name },
            'a message could not be delivered to a remote',
          ),
        );
    },
  };
}

/** Steers the task; a server without such an operation gets the text as the next message of the session. */
async function sendMessage(
  { remote }: FollowContext,
  task: RemoteTask,
  { id, role, parts }: JsonObject,
): Promise<void> {
  const message = { role, parts };
  const key = typeof id === 'string' ? { key: `tollbridge-${id}` } : {};
  try {
    await remote.call('POST', `/v1/tasks/${segment(task.id)}/messages`, {
      body: { kind: remote.revision.steering, message },
      ...key,
    });
  } catch (cause) {
    if (!(cause instanceof RemoteRefusal && cause.status === 400 && task.session_id)) throw cause;
    await remote.call('POST', `/v1/sessions/${segment(task.session_id)}/messages`, { body: { message }, ...key });
  }
}
