/**
 * A remote Harness over HTTP: negotiates the revision, and keeps the remote's own error messages. Uses the newest revision that
 * both sides support; a remote that stops supporting it is asked for its revisions again.
 */
import { RECEIPT_JSON, VERSION_HEADER } from '../../../mappings/harn.ts';
import { Fault, type JsonObject } from '../../../src/index.ts';
import {
  createRemote,
  type Remote,
  type RemoteOptions,
  RemoteRefusal,
} from '../../../src/transport/outbound/remote.ts';
import type { TraceMembers } from '../../../src/transport/outbound/trace-context.ts';
import { DEFAULT, newestCommon, REVISIONS, type Revision, revisionNamed, VERSIONS } from '../revisions/revisions.ts';

export interface HarnRemote extends Remote {
  /** Reads the remote's description; from then on the newest common revision is used. */
  discover(signal?: AbortSignal): Promise<JsonObject | undefined>;
  /** The revision in use. */
  readonly revision: Revision;
  /** Whether a key makes sure that this request is done only once. */
  keyed(method: string, path: string): boolean;
  within(trace: TraceMembers): HarnRemote;
}

type HarnRemoteOptions = Pick<RemoteOptions, 'base' | 'token' | 'requestMs'>;

export function createHarnRemote(options: HarnRemoteOptions): HarnRemote {
  /** In use, for every trace alike: a remote that has changed its mind is asked once. */
  const spoken = { revision: REVISIONS.at(-1) ?? DEFAULT };
  const plain = createRemote({
    ...options,
    headers: {
      get [VERSION_HEADER]() {
        return spoken.revision.version;
      },
    },
    accept: `application/json, ${RECEIPT_JSON};q=0.1`,
    refusal,
  });
  return speaking(plain, spoken);
}

function speaking(plain: Remote, spoken: { revision: Revision }): HarnRemote {
  const keyed: HarnRemote['keyed'] = (method, path) =>
    spoken.revision.match(method, pathOf(path))?.operation.key ?? spoken.revision.strayKey === 'ignored';

  /** No key is sent to an operation that takes none: a remote may refuse the request for it. */
  const withKey = <A extends { readonly key?: string }>(method: string, path: string, asking: A): A => {
    if (asking.key === undefined || keyed(method, path)) return asking;
    const { key: _, ...rest } = asking;
    return rest as A;
  };

  /** A remote that does not answer discovery in one revision is tried in the previous one. */
  async function described(signal: AbortSignal | undefined): Promise<JsonObject | undefined> {
    for (const version of VERSIONS) {
      spoken.revision = revisionNamed(version) ?? spoken.revision;
      try {
        return await plain.call<JsonObject>('GET', '/v1', signal ? { signal } : {});
      } catch (cause) {
        if (!isOtherVersion(cause) || version === VERSIONS.at(-1)) throw cause;
      }
    }
    return undefined;
  }

  async function discover(signal?: AbortSignal): Promise<JsonObject | undefined> {
    const found = await described(signal);
    const { supported_versions } = found ?? {};
    // A remote that names no versions was written when there was only one.
    const named = Array.isArray(supported_versions) ? supported_versions : [DEFAULT.version];
    const common = revisionNamed(newestCommon(named));
    if (!common) throw new Fault('upstream_unavailable', `the remote speaks none of ${VERSIONS.join(', ')}`);
    spoken.revision = common;
    return found;
  }

  /** A refusal of the version comes before the request has any effect, so the request may be sent again in another one. */
  async function again<T>(send: () => Promise<T>): Promise<T> {
    const { version } = spoken.revision;
    try {
      return await send();
    } catch (cause) {
      if (!isOtherVersion(cause)) throw cause;
      await discover();
      if (spoken.revision.version === version) throw cause;
      return await send();
    }
  }

  return {
    base: plain.base,
    discover,
    get revision() {
      return spoken.revision;
    },
    keyed,
    within: (trace) => speaking(plain.within(trace), spoken),
    call: (method, path, asking = {}) => again(() => plain.call(method, path, withKey(method, path, asking))),
    bytes: (path, asking) => again(() => plain.bytes(path, asking)),
    open: (path, asking) => again(() => plain.open(path, asking)),
  };
}

function pathOf(path: string): string {
  return path.split('?', 1)[0] ?? path;
}

function isOtherVersion(cause: unknown): boolean {
  return cause instanceof RemoteRefusal && cause.status === 426;
}

function refusal(body: unknown): { readonly code: string; readonly message: string } {
  const { error } = (body ?? {}) as { error?: JsonObject | string };
  const details = typeof error === 'object' && error !== null ? error : {};
  return {
    code: typeof details.code === 'string' ? details.code : '',
    message: typeof details.message === 'string' ? details.message : typeof error === 'string' ? error : '',
  };
}
