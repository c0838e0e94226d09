/**
 * The sign-ins of callers that are under way, in a vault: any process with the same vaults can show a link's page, receive the browser
 * that comes back, and take the code. Each caller has an entry of its own, found by a part of its links and states that is a hash and
 * names nobody. Without a vault that can be written they are in memory.
 */
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import type { CredentialOwner } from '../../../../src/transport/outbound/caller-credentials.ts';
import type { BegunSignIn, KeptSignIn } from './sign-in.ts';
import type { SignInRefusal } from './sign-in-links.ts';

/** One link of one caller. All of it is secret. */
export interface Pending {
  readonly id: string;
  readonly caller: CredentialOwner;
  /** In milliseconds, by the clock of the machine. */
  readonly expires: number;
  readonly why?: SignInRefusal;
  readonly tries: number;
  /** The sign-in that one browser has begun. Another browser that opens the link begins anew. */
  readonly begun?: BegunInBrowser;
  /** Set when the browser is back with tokens. */
  readonly came?: { readonly code: string; readonly kept: KeptSignIn };
}

export interface BegunInBrowser extends BegunSignIn {
  /** The secret in the cookie of the browser. */
  readonly browser_secret: string;
  /** Where the authorization server was told to send the browser. */
  readonly redirect: string;
  /** Our registrations, as the sign-in left them. */
  readonly kept: KeptSignIn;
}

/** Where the links of one caller are. */
export interface LinkEntry {
  read(): Promise<readonly Pending[]>;
  write(links: readonly Pending[]): Promise<void>;
  /** Runs `work` under a lock that holds across processes. */
  alone<T>(work: () => Promise<T>): Promise<T>;
}

export interface OpenLinks {
  /** A new id for a link of this caller. */
  newId(caller: CredentialOwner): string;
  /** A new state for a sign-in by this link. */
  newState(id: string): string;
  /** The links of a caller that are not too old. */
  of(caller: CredentialOwner): Promise<readonly Pending[]>;
  /** The links of the caller to whom a link or a state belongs. */
  near(idOrState: string): Promise<readonly Pending[]>;
  /** Changes the links of one caller under its lock, and returns what `work` returns beside them. */
  change<T>(of: CredentialOwner | string, work: (links: readonly Pending[]) => Changed<T>): Promise<T>;
}

export interface Changed<T> {
  readonly links: readonly Pending[];
  readonly result: T;
}

const REFERENCE_LENGTH = 16;
const NAME = /^[\w-]{40}[\w.~-]{0,120}$/;

/** `mark` ends each name, so that a replica that is asked first hands the request on to the one that made it, while that one lives. */
export function createOpenLinks(
  entryOf: (reference: string) => LinkEntry,
  now: () => number,
  mark: () => string,
): OpenLinks {
  const live = (links: readonly Pending[]) => links.filter(({ expires }) => expires > now());
  const refer = (of: CredentialOwner | string) =>
    typeof of === 'string' ? of.slice(0, REFERENCE_LENGTH) : referenceOf(of);

  return {
    newId: (caller) => `${referenceOf(caller)}${randomBytes(18).toString('base64url')}${mark()}`,
    newState: (id) => `${id.slice(0, REFERENCE_LENGTH)}${randomUUID()}${mark()}`,
    of: async (caller) => live(await entryOf(referenceOf(caller)).read()),
    async near(idOrState) {
      // Anybody may ask for any address: only what can be a link or a state is looked up.
      if (!NAME.test(idOrState)) return [];
      return live(await entryOf(refer(idOrState)).read());
    },
    async change(of, work) {
      const entry = entryOf(refer(of));
      return await entry.alone(async () => {
        const before = live(await entry.read());
        const { links, result } = work(before);
        if (links !== before) await entry.write(links);
        return result;
      });
    },
  };
}

/** Two callers never share one. */
function referenceOf({ id, tenant_id }: CredentialOwner): string {
  const digest = createHash('sha256').update(JSON.stringify([tenant_id ?? null, id]));
  return digest.digest('base64url').slice(0, REFERENCE_LENGTH);
}

/** For a process that can write no vault. */
export function entriesInMemory(): (reference: string) => LinkEntry {
  const entries = new Map<string, readonly Pending[]>();
  return (reference) => ({
    read: async () => entries.get(reference) ?? [],
    async write(links) {
      if (links.length > 0) entries.set(reference, links);
      else entries.delete(reference);
    },
    alone: (work) => work(),
  });
}
