/**
 * The configuration in force in this process, and its only owner. It watches the files the configuration came from and
 * every rule file, and applies at once and in one step every change that drops no connection: agents, tools, harnesses,
 * personas, quotas, rules and the files they are read from. The other sections are reported as waiting for a restart. A
 * configuration that cannot be read changes nothing. Every change and every refusal is an event.
 */

import type { Log } from '../core/events/log.ts';
import { asFault, Fault } from '../model/faults.ts';
import type { ConfigLoadedPayload } from '../model/payloads.ts';
import { type WatchedPaths, watchPaths } from '../policy/rules/watch.ts';
import type { Closable, Logger } from '../ports/index.ts';
import { type Config, WITHOUT_RESTART } from './config/config.ts';
import { withoutEnvironment } from './config/environment.ts';
import type { ConfigFile } from './config/shape.ts';

export interface FollowDeps {
  readonly log: Pick<Log, 'commit'>;
  /** Applies a configuration and returns the paths that changed; throws, and changes nothing, when it cannot. */
  readonly take: (config: Config) => Promise<readonly string[]>;
  /** Reads the rules again, from the files that `current()` names. */
  readonly reloadRules: () => Promise<unknown>;
}

export interface LiveConfig extends Closable {
  current(): Config;
  /** Starts watching: from now on changes of the files are applied. */
  follow(deps: FollowDeps): void;
  /**
   * Undefined when the files are those in force here. Otherwise resolves when the change is in force or was refused, or
   * when that takes too long for a decision to wait. Called before each decision, so that none is taken by rules that
   * were replaced before it was requested.
   */
  upToDate(): Promise<void> | undefined;
  reload(): Promise<ConfigLoadedPayload | undefined>;
}

/** A decision waits this long for a change of the files to be read. After that the rules in force decide. */
const WAIT_MS = 1_500;
const DEBOUNCE_MS = 50;

export function createLiveConfig(first: Config, logger: Logger): LiveConfig {
  let current = first;
  let deps: FollowDeps | undefined;
  let watched: { readonly paths: string; readonly files: WatchedPaths } | undefined;
  let last: Promise<unknown> = Promise.resolve();
  /** The files were compared in this turn of the event loop; decisions taken in one turn compare once. */
  let looked = false;
  let refused: string | undefined;
  let pendingRead: Promise<void> | undefined;
  let closed = false;

  async function once(): Promise<ConfigLoadedPayload | undefined> {
    if (!deps || closed) return undefined;
    const change = await attempt(deps);
    watch();
    // One mistake is one event, however often the file is read while it is there.
    const news = change && (change.error === null || change.error !== refused);
    refused = change ? (change.error ?? undefined) : refused;
    if (change && news) await note(change, deps);
    await deps.reloadRules();
    return news ? change : undefined;
  }

  async function note(change: ConfigLoadedPayload, { log }: FollowDeps): Promise<void> {
    if (change.error)
      logger.error({ error: change.error }, 'the new configuration was refused; the old one stays in force');
    else if (change.waits_for_restart.length > 0) logger.warn({}, waiting(change.waits_for_restart));
    const resource = { object: 'configuration', id: 'file' };
    await log
      .commit({ decide: () => ({ events: [{ event: 'vendor.tollbridge.config_loaded', resource, payload: change }] }) })
      .catch((cause) => logger.error({ err: cause }, 'a change of the configuration could not be written down'));
  }

  async function attempt({ take }: FollowDeps): Promise<ConfigLoadedPayload | undefined> {
    let next: Config | undefined;
    try {
      next = await current.again();
      // Without its file a configuration reads as an empty one, which would drop everything it had named.
      if (current.file && !next.file) throw new Fault('not_found', `${current.file} is no longer there`);
      const different = sectionsThatDiffer(current.written, next.written);
      const hot = different.filter((section) => (WITHOUT_RESTART as readonly string[]).includes(section));
      const cold = different.filter((section) => !hot.includes(section) && section !== 'rules');
      if (hot.length === 0 && cold.length === 0) {
        current = next;
        refused = undefined;
        return undefined;
      }
      const changed = hot.some((section) => section !== 'policies') ? await take(next) : [];
      const files = hot.includes('policies') ? ['policies'] : [];
      current = next;
      return { outcome: 'loaded', changed: [...changed, ...files], waits_for_restart: cold, error: null };
    } catch (thrown) {
      const { message } = asFault(thrown);
      return {
        outcome: 'refused',
        changed: [],
        waits_for_restart: [],
        error: withoutEnvironment(message, (next ?? current).environment),
      };
    }
  }

  const reload = () => {
    const next = last.then(once);
    const done: Promise<void> = next
      .catch((cause) => logger.error({ err: cause }, 'the configuration could not be read again'))
      .then(() => {
        if (pendingRead === done) pendingRead = undefined;
      });
    last = done;
    pendingRead = done;
    return next;
  };

  function watch(): void {
    if (closed) return;
    const paths = [...new Set([...(current.file ? [current.file] : []), ...current.policy.watch])].sort();
    const key = JSON.stringify(paths);
    if (watched?.paths === key) return;
    const others = watched !== undefined;
    watched?.files.close();
    watched = { paths: key, files: watchPaths({ paths, debounceMs: DEBOUNCE_MS, onEvent: reload }) };
    // A change between the last read and this watch is found by one more read.
    if (others) void reload().catch(() => {});
  }

  return {
    current: () => current,
    follow(dependencies) {
      deps = dependencies;
      watch();
      // A change between the first read and the first watch is found now.
      void reload().catch(() => {});
    },
    upToDate() {
      if (!watched || closed || looked) return undefined;
      const pending = watched.files.changed() ?? pendingRead;
      // While a change is being read every decision waits for it, and not only the first one.
      if (pending) return atMost(WAIT_MS, pending);
      looked = true;
      setImmediate(() => {
        looked = false;
      });
      return undefined;
    },
    reload,
    async close() {
      closed = true;
      watched?.files.close();
      await last;
    },
  };
}

function atMost(ms: number, work: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    work.then(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/** `listen and vaults were changed, which takes a restart; everything else is in force`. */
function waiting(sections: readonly string[]): string {
  const [last, ...others] = [...sections].reverse();
  const named = others.length > 0 ? `${others.reverse().join(', ')} and ${last} were` : `${last} was`;
  return `${named} changed in the configuration, which takes a restart; until then the old values count`;
}

function sectionsThatDiffer(before: ConfigFile, after: ConfigFile): readonly string[] {
  const all = new Set([...Object.keys(before), ...Object.keys(after)]) as Set<keyof ConfigFile>;
  return [...all].filter((section) => JSON.stringify(before[section]) !== JSON.stringify(after[section])).sort();
}
