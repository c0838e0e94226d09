/** Requests to a peer and downloads from it: message ids that identify repeats, lookup of existing tasks, files. */
import { createHash } from 'node:crypto';
import type { Message, SendMessageRequest, Task } from '@a2a-js/sdk';
import { ServiceParameters, withA2AExtensions } from '@a2a-js/sdk/client';
import { EXTENSIONS } from '../../../mappings/a2a.ts';
import { type CallerReference, Fault, type Work } from '../../../src/index.ts';
import { readWithin } from '../../../src/transport/outbound/remote.ts';
import type { BackendDeps, PeerSettings } from './config.ts';
import { NotKnown } from './faults.ts';
import { guardedFetch, type PeerConnection } from './peer/connect.ts';
import type { ReadStep } from './read-updates.ts';

interface Reach {
  readonly settings: PeerSettings;
  readonly deps: BackendDeps;
  readonly connection: PeerConnection;
  readonly work: Work;
}

/** The same id on every attempt, so that a peer with idempotency keys can detect a repeat. */
export function messageIdOf({ task }: Work): string {
  return `${task.id}.input`;
}

/** `caller`: the reference to us for another Tollbridge gateway that is given work. */
export function requestOf(message: Message, returnImmediately: boolean, caller?: CallerReference): SendMessageRequest {
  const configuration = { returnImmediately, acceptedOutputModes: [], taskPushNotificationConfig: undefined };
  const metadata = caller && { [EXTENSIONS.record]: { caller } };
  return { tenant: '', message, configuration, metadata };
}

/**
 * Another Tollbridge gateway creates one task per message id when asked to, so sending again after a restart is safe, and it
 * reports its calls. `after`: the stream continues after this event of the peer.
 */
export function optionsFor({ extensions }: PeerConnection, after?: string) {
  const wanted = WANTED.filter((uri) => extensions.has(uri));
  if (wanted.length === 0) return {};
  const parameters = ServiceParameters.create(withA2AExtensions(...wanted));
  return { serviceParameters: after ? { ...parameters, 'last-event-id': after } : parameters };
}
const WANTED = [
  EXTENSIONS.once,
  EXTENSIONS.asks,
  EXTENSIONS.activity,
  EXTENSIONS.resume,
  EXTENSIONS.record,
  EXTENSIONS.pieces,
] as const;

/** The peer's task from before our restart. Undefined: sending the work again is safe. */
export async function findAgain({ connection, work, settings }: Reach): Promise<Task | undefined> {
  // With one address a repeat is the same task; with several, another address may have it.
  if (connection.extensions.has(EXTENSIONS.once) && !settings.several) return undefined;
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
  if (!found) throw new NotKnown();
  return await connection.client.getTask({ id: found.id, tenant: '' }, { signal });
}

/** Downloads a file behind a link of the peer, when its origin is allowed; otherwise only the link is kept. */
export async function withBytes({ settings, deps }: Reach, { file, url }: Extract<ReadStep, { do: 'keep' }>) {
  if (!url || !URL.canParse(url) || !settings.allowed.has(new URL(url).origin)) return file;
  try {
    const answer = await guardedFetch(settings, deps)(url, { signal: AbortSignal.timeout(settings.requestMs) });
    const size = Number(answer.headers.get('content-length') ?? Number.POSITIVE_INFINITY);
    if (!answer.ok || size > settings.artifactLimit) {
      await answer.body?.cancel();
      return file;
    }
    const { uri: _link, ...rest } = file;
    // The header counts the transferred bytes, which may be compressed.
    return { ...rest, bytes: new Uint8Array(await readWithin(answer, settings.artifactLimit)) };
  } catch (cause) {
    deps.log.warn({ err: cause, peer: settings.name }, 'a file of a peer stayed there');
    return file;
  }
}

export function digest(text: string): string {
  return `sha256:${createHash('sha256').update(text).digest('hex')}`;
}
