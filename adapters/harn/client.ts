/**
 * A remote Harness as an agent of this house. It is given a task, followed to its end, asked and answered, steered and
 * stopped. What it did it did elsewhere: its word for it is written down as its word.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { AgentBackend, JsonObject, Run } from '../../src/index.ts';
import { Refusal } from '../../src/wire/remote.ts';
import { type BackendDeps, backendSettingsOf, type HarnBackendConfig } from './client-config.ts';
import { type Desk, follow } from './client-follow.ts';
import { createGiver } from './client-give.ts';
import { createHarnRemote } from './client-http.ts';
import type { RemoteTask } from './client-translate.ts';

export function harnBackend(config: HarnBackendConfig, deps: BackendDeps): AgentBackend {
  const settings = backendSettingsOf(config);
  const remote = createHarnRemote({
    base: settings.base,
    requestMs: settings.requestMs,
    token: async () => (settings.secret ? await deps.secret(settings.secret) : undefined),
  });
  const giver = createGiver({ remote, settings, log: deps.log, pause });
  return {
    name: settings.name,
    // The remote keeps the task under a name we can find it by, so a restart of ours is not the end of it.
    abilities: { resume: true, evidence: 'observed', steer: true },
    async start(work, sink, signal) {
      const desk: Desk = { settings, remote, deps, work, sink, signal, pause };
      return startRun(desk, giver.give(work, signal));
    },
  };
}

function startRun(desk: Desk, given: Promise<RemoteTask>): Run {
  let turn: Promise<unknown> = given.catch(() => {});
  return {
    done: given.then((task) => follow(desk, task)),
    steer(message) {
      turn = turn
        .then(async () => tell(desk, await given, message))
        .catch((cause) => desk.deps.log.warn({ err: cause, remote: desk.settings.name }, 'a remote could not be told'));
    },
  };
}

/** Steers the task; a server without a word for that gets it as the next thing said in the session. */
async function tell({ remote }: Desk, task: RemoteTask, { id, role, parts }: JsonObject): Promise<void> {
  const message = { role, parts };
  const key = typeof id === 'string' ? { key: `tollbridge-${id}` } : {};
  try {
    await remote.call('POST', `/v1/tasks/${task.id}/messages`, { body: { kind: 'interrupt', message }, ...key });
  } catch (cause) {
    if (!(cause instanceof Refusal && cause.status === 400 && task.session_id)) throw cause;
    await remote.call('POST', `/v1/sessions/${task.session_id}/messages`, { body: { message }, ...key });
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => {});
}
