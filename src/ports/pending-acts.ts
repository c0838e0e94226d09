/** Acts as they will run, for as long as people are asked about them. */
import type { PendingAct } from '../model/asks.ts';

/**
 * The log holds acts without their secrets; the person who answers has to see what will run. So the whole act is kept beside
 * the log, unreadable to anyone without this installation's keys, until its question is closed.
 */
export interface PendingActs {
  /** Resolves once every process that shares the log can read it. Rejects with the reason when it cannot be kept. */
  keep(askId: string, act: PendingAct): Promise<void>;
  /** Undefined when there is none. Rejects when there is one that cannot be read. */
  read(askId: string): Promise<PendingAct | undefined>;
  /** At once, so that it happens in the step that closes the question. Nothing to drop is fine. */
  drop(askId: string): void;
  /** Every act that is kept, with the time since it was in milliseconds. */
  list(): Promise<readonly { readonly askId: string; readonly ageMs: number }[]>;
}

/** A file as it is now: null when there is none, undefined when it cannot be told. Only below the named directory. */
export type ReadFileText = (path: string, within: string) => Promise<string | null | undefined>;
