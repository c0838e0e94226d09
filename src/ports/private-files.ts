/**
 * Small texts that belong to an installation and not to its log: keys, API keys, sign-ins, switches, secrets. Private to it, and replaced
 * whole or not at all. All processes that share them see a change within a second.
 */
import type { Closable } from './store.ts';

export interface PrivateFiles extends Closable {
  /** How messages call a file. */
  nameOf(file: string): string;
  /** Undefined when there is no such file. At most half a second old; rejects where nobody can be asked. */
  read(file: string): Promise<string | undefined>;
  /** Changes with the file. Asks again where it may be out of date, so that what was revoked is refused within a second. */
  fresh(file: string): string | Promise<string>;
  /** The same without asking: cheap, for each use of it; at most `lagMs` behind. Throws where that cannot be promised. */
  version(file: string): string;
  /** The text of that version, for work that cannot wait. */
  readNow(file: string): string | undefined;
  /** Processes that change a file at once take turns. */
  replace(file: string, change: (text: string | undefined) => string): Promise<void>;
  /** Runs `work` while no other caller, in any process, works under this name. */
  alone<T>(name: string, work: () => Promise<T>): Promise<T>;
  /** How long another process may go on with what a file was before, with the difference of the clocks. */
  readonly lagMs: number;
}
