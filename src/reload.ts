/**
 * A configuration that may change while work goes on. What can change without dropping anyone is taken at once and in one
 * step: agents, tools, harnesses, personas, quotas, how long events are kept. The rest is named as waiting for a restart. One
 * that cannot be read changes nothing. Each time it is written down. (Rules have a watcher of their own.)
 */
import { type Config, WITHOUT_RESTART } from './config.ts';
import type { ConfigFile } from './config-shape.ts';
import { asFault } from './model/faults.ts';
import type { JsonObject } from './model/schema.ts';
import { watchPaths } from './policy/watch.ts';
import type { Closable, Logger, Store } from './ports.ts';

export interface ConfigChange {
  readonly outcome: 'loaded' | 'refused';
  /** What is different now: `agents.far`, `personas.careful`, `retention`. */
  readonly changed: readonly string[];
  /** Different in the file, and not yet here. */
  readonly waits_for_restart: readonly string[];
  readonly error: string | null;
}

export interface ReloadDeps {
  readonly config: Config;
  readonly store: Pick<Store, 'commit'>;
  readonly log: Logger;
  /** Puts it in place and says what that changed; throws, and changes nothing, when it cannot. */
  readonly take: (config: Config) => Promise<readonly string[]>;
}

export interface Reloading extends Closable {
  reload(): Promise<ConfigChange | undefined>;
}

export function reloading({ config: first, store, log, take }: ReloadDeps): Reloading {
  let current = first;
  let last: Promise<unknown> = Promise.resolve();

  async function once(): Promise<ConfigChange | undefined> {
    const change = await attempt();
    if (!change) return undefined;
    if (change.error)
      log.error({ error: change.error }, 'the new configuration was refused; the old one stays in force');
    else if (change.waits_for_restart.length > 0) log.warn({}, waiting(change.waits_for_restart));
    const resource = { object: 'configuration', id: 'file' };
    const payload = change as unknown as JsonObject;
    await store.commit({
      decide: () => ({ events: [{ event: 'vendor.tollbridge.config_loaded', resource, payload }] }),
    });
    return change;
  }

  async function attempt(): Promise<ConfigChange | undefined> {
    try {
      const next = await current.again();
      const different = sectionsThatDiffer(current.written, next.written);
      const hot = different.filter((section) => (WITHOUT_RESTART as readonly string[]).includes(section));
      const cold = different.filter((section) => !hot.includes(section) && section !== 'rules');
      if (hot.length === 0 && cold.length === 0) {
        current = next;
        return undefined;
      }
      const changed = hot.length > 0 ? await take(next) : [];
      current = next;
      return { outcome: 'loaded', changed, waits_for_restart: cold, error: null };
    } catch (thrown) {
      return { outcome: 'refused', changed: [], waits_for_restart: [], error: asFault(thrown).message };
    }
  }

  const reload = () => {
    const next = last.then(once);
    last = next.catch((cause) => log.error({ err: cause }, 'a change of the configuration could not be written down'));
    return next;
  };
  const watched = first.file
    ? watchPaths({ paths: [first.file], debounceMs: 50, onEvent: () => void reload().catch(() => {}) })
    : undefined;
  return {
    reload,
    async close() {
      watched?.close();
      await last;
    },
  };
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
