/**
 * Failed logins: answered more and more slowly, and recorded. Counted by address and by the id of the tried key; only
 * failures wait, so a good credential is accepted at once, whatever else comes from its address. Memory and events are
 * bounded: many failures of one address share an event, and so do those of many addresses. No part of a secret is kept.
 */

import { Fault } from '../model/faults.ts';
import { LruMap } from '../model/values/lru-map.ts';

export interface FailedLogin {
  readonly door: string;
  readonly address: string;
  /** The public part of an API key. */
  readonly key_id?: string | undefined;
}

/** The recorded note: one failure, or all that followed within the minute. */
export interface FailedLoginNote {
  readonly doors: readonly string[];
  /** Null for a note about several addresses. */
  readonly address: string | null;
  readonly key_ids: readonly string[];
  readonly attempts: number;
}

export interface FailedLogins {
  /** Resolves when the caller may be answered. Throws `rate_limited` when too many of its failures wait already. */
  slow(failed: FailedLogin): Promise<void>;
  close(): void;
}

export interface FailedLoginsOptions {
  now(): number;
  pause(ms: number): Promise<void>;
  write(note: FailedLoginNote): void;
}

/** Failures without a delay: a typo, an old key in a file. */
const FREE = 3;
const FIRST_MS = 100;
const LONGEST_MS = 2_000;
/** After this long without a failure an address starts from zero. */
const FORGET_MS = 60_000;
const MOST_KEPT = 4_096;
const MOST_WAITING = 256;
const MOST_WAITING_EACH = 16;
/** Notes are written at once while there are few, and once a minute otherwise. */
const NOTES_PER_MINUTE = 10;
const LISTED = 20;

interface Count {
  failures: number;
  last: number;
  waiting: number;
}

interface Unsaid {
  readonly doors: Set<string>;
  readonly addresses: Set<string>;
  readonly keyIds: Set<string>;
  attempts: number;
}

export function createFailedLogins({ now, pause, write }: FailedLoginsOptions): FailedLogins {
  const counts = new LruMap<string, Count>(MOST_KEPT);
  let waiting = 0;
  let unsaid: Unsaid | undefined;
  let timer: NodeJS.Timeout | undefined;
  /** Addresses recorded in this minute, which is over when the timer fires. */
  const said = new Set<string>();

  function countOf(name: string): Count {
    const known = counts.get(name);
    const count = known && now() - known.last < FORGET_MS ? known : { failures: 0, last: 0, waiting: 0 };
    counts.set(name, count);
    return count;
  }

  function note({ door, address, key_id }: FailedLogin): void {
    timer ??= setTimeout(flush, FORGET_MS).unref();
    if (!said.has(address) && said.size < NOTES_PER_MINUTE) {
      said.add(address);
      write({ doors: [door], address, key_ids: key_id ? [key_id] : [], attempts: 1 });
      return;
    }
    unsaid ??= { doors: new Set(), addresses: new Set(), keyIds: new Set(), attempts: 0 };
    unsaid.attempts += 1;
    unsaid.doors.add(door);
    if (unsaid.addresses.size < 2) unsaid.addresses.add(address);
    if (key_id && unsaid.keyIds.size < LISTED) unsaid.keyIds.add(key_id);
  }

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    said.clear();
    const left = unsaid;
    unsaid = undefined;
    if (!left) return;
    const [only, more] = left.addresses;
    write({
      doors: [...left.doors],
      address: more === undefined ? (only ?? null) : null,
      key_ids: [...left.keyIds],
      attempts: left.attempts,
    });
  }

  return {
    async slow(failed) {
      const address = networkOf(failed.address);
      note({ ...failed, address });
      const tried = [countOf(`from ${address}`), ...(failed.key_id ? [countOf(`key ${failed.key_id}`)] : [])];
      for (const count of tried) {
        count.failures += 1;
        count.last = now();
      }
      const ms = Math.max(...tried.map(({ failures }) => delayAfter(failures)));
      if (ms === 0) return;
      const from = tried[0] as Count;
      if (waiting >= MOST_WAITING || from.waiting >= MOST_WAITING_EACH) {
        throw new Fault('rate_limited', 'too many failed logins', { details: { retry_after_ms: LONGEST_MS } });
      }
      waiting += 1;
      from.waiting += 1;
      try {
        await pause(ms);
      } finally {
        waiting -= 1;
        from.waiting -= 1;
      }
    },
    close: flush,
  };
}

function delayAfter(failures: number): number {
  return failures <= FREE ? 0 : Math.min(FIRST_MS * 2 ** Math.min(failures - FREE - 1, 10), LONGEST_MS);
}

/** One machine can use any number of IPv6 addresses: those of one /64 network count as one. */
function networkOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped || !address.includes(':')) return mapped ?? address;
  const [head = '', tail] = address.split('%', 1)[0]!.split('::');
  const first = head === '' ? [] : head.split(':');
  const last = tail ? tail.split(':') : [];
  const whole = tail === undefined ? first : [...first, ...Array(8 - first.length - last.length).fill('0'), ...last];
  return whole.slice(0, 4).every((part) => /^0*$/.test(part)) ? address : `${whole.slice(0, 4).join(':')}::/64`;
}
