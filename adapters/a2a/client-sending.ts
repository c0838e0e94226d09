/** What is sent to a peer and fetched from it: requests that can be told from their repeats, tasks found again, files. */
import type { Message, SendMessageRequest, Task } from '@a2a-js/sdk';
import { ServiceParameters, withA2AExtensions } from '@a2a-js/sdk/client';
import { EXTENSIONS } from '../../mappings/a2a.ts';
import { Fault, type Work } from '../../src/index.ts';
import type { BackendDeps, PeerSettings } from './client-config.ts';
import { type Connection, guardedFetch } from './client-connect.ts';
import type { Deed } from './client-reading.ts';

interface Reach {
  readonly settings: PeerSettings;
  readonly deps: BackendDeps;
  readonly connection: Connection;
  readonly work: Work;
}

/** Sent under the same id each time, so that a peer that keeps keys can tell a repeat. */
export function messageIdOf({ task }: Work): string {
  return `${task.id}.input`;
}

export function requestOf(message: Message, returnImmediately: boolean): SendMessageRequest {
  const configuration = { returnImmediately, acceptedOutputModes: [], taskPushNotificationConfig: undefined };
  return { tenant: '', message, configuration, metadata: undefined };
}

/** A gateway like ours makes one task of one id when asked to, so sending again after a restart is safe. */
export function optionsFor({ extensions }: Connection) {
  const wanted = [EXTENSIONS.once, EXTENSIONS.asks].filter((uri) => extensions.has(uri));
  return wanted.length > 0 ? { serviceParameters: ServiceParameters.create(withA2AExtensions(...wanted)) } : {};
}

/** The task a peer was given before a restart of ours. Undefined: giving it again is safe. */
export async function findAgain({ connection, work, settings }: Reach): Promise<Task | undefined> {
  if (connection.extensions.has(EXTENSIONS.once)) return undefined;
  const wanted = messageIdOf(work);
  const ask = {
    tenant: '',
    contextId: '',
    status: 0,
    pageSize: 100,
    pageToken: '',
    historyLength: 100,
    includeArtifacts: false,
    statusTimestampAfter: undefined,
  };
  const signal = AbortSignal.timeout(settings.requestMs);
  const { tasks } = await connection.client.listTasks(ask, { signal }).catch((cause) => {
    throw new Fault('upstream_unavailable', 'whether the peer was given this task before the restart is unknown', {
      cause,
    });
  });
  const found = tasks.find(({ history }) => history.some(({ messageId }) => messageId === wanted));
  if (!found)
    throw new Fault('upstream_unavailable', 'the peer no longer knows the task it was given before the restart');
  return await connection.client.getTask({ id: found.id, tenant: '' }, { signal });
}

/** Bytes behind a link of the peer's own, when we may go there; otherwise the link is what is kept. */
export async function withBytes({ settings, deps }: Reach, { file, url }: Extract<Deed, { do: 'keep' }>) {
  if (!url || !URL.canParse(url) || !settings.allowed.has(new URL(url).origin)) return file;
  try {
    const answer = await guardedFetch(settings, deps)(url, { signal: AbortSignal.timeout(settings.requestMs) });
    const size = Number(answer.headers.get('content-length') ?? Number.POSITIVE_INFINITY);
    if (!answer.ok || size > settings.artifactLimit) return file;
    const { uri: _link, ...rest } = file;
    return { ...rest, bytes: new Uint8Array(await answer.arrayBuffer()) };
  } catch (cause) {
    deps.log.warn({ err: cause, peer: settings.name }, 'a file of a peer stayed there');
    return file;
  }
}
