/** Unredacted acts, kept as long as their questions are open. */
import type { PendingAct } from '../model/asks.ts';

/**
 * The log holds acts without their secrets, but the approver has to see exactly what will run. So the whole act is kept beside the
 * log, encrypted with this installation's keys, until its question is closed.
 */
export interface PendingActs {
  /** Resolves once every process that shares the log can read the act. Rejects with the reason when it cannot be stored. */
  keep(askId: string, act: PendingAct): Promise<void>;
  /** Undefined when there is no such act. Rejects when the stored act cannot be read. */
  read(askId: string): Promise<PendingAct | undefined>;
  /** Synchronous, so that it happens in the step that closes the question. A missing act is not an error. */
  drop(askId: string): void;
  /** Every stored act, with its age in milliseconds. */
  list(): Promise<readonly { readonly askId: string; readonly ageMs: number }[]>;
}

/**
 * The current text of a file: null when there is no such file, undefined when it cannot be read. Only below the directory `within`.
 */
export type ReadFileText = (path: string, within: string) => Promise<string | null | undefined>;
