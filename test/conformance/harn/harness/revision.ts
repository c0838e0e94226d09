/** A revision of the protocol as the suite examines it: what it is called, and its answers where revisions differ. */

import type { Write } from '../resources/writes.ts';
import type { Category } from './suite.ts';

export interface Revision {
  readonly version: string;
  /** Paths whose POST takes an idempotency key. */
  readonly keyedPaths: RegExp;
  /** Writes that take an idempotency key, and those where one is refused. */
  readonly keyed: readonly Write[];
  readonly unkeyed: readonly Write[];
  /** The status of a repeated write, by that of the first, where it is another. */
  readonly repeated: Readonly<Record<number, number>>;
  /** Kinds of messages a task takes, and the one of them that steers a running task. */
  readonly taskMessages: readonly string[];
  readonly steering: string;
  /** What no other revision has. */
  readonly own: readonly Category[];
}
