/**
 * Agents that a person switched off while the gateway runs: one file in the data directory, read again when it changes, so
 * that every process of this installation knows at its next request. A file that cannot be read switches every agent off.
 */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { replacePrivate } from '../auth/private-file.ts';
import { Fault } from '../model/faults.ts';
import { NonEmpty, Timestamp } from '../model/schema.ts';
import { type Static, Type } from '../model/type.ts';
import { check } from '../model/validate.ts';
import { own } from '../model/values/own.ts';

const Switch = Type.Object({ reason: NonEmpty, by: NonEmpty, at: Timestamp });
export type AgentSwitch = Static<typeof Switch>;
const SwitchFile = Type.Object({
  format: Type.Literal('tollbridge-agents-1'),
  off: Type.Unsafe<Readonly<Record<string, AgentSwitch>>>({ type: 'object', additionalProperties: Switch }),
});
type SwitchFile = Static<typeof SwitchFile>;
const EMPTY: SwitchFile = { format: 'tollbridge-agents-1', off: {} };

export interface AgentSwitches {
  /** Why this agent is switched off; undefined while it is on. */
  reason(agent: string): string | undefined;
  list(): Readonly<Record<string, AgentSwitch>>;
  /** Switches an agent off, or on again without a reason. False: it was that way already. */
  set(agent: string, off: AgentSwitch | undefined): Promise<boolean>;
}

export function openAgentSwitches(dataDir: string): AgentSwitches {
  const path = join(dataDir, 'agents', 'switches.json');
  let held: { readonly version: string; readonly file: SwitchFile } | undefined;

  function current(): SwitchFile {
    const stat = statSync(path, { throwIfNoEntry: false, bigint: true });
    if (!stat) return EMPTY;
    const version = `${stat.ino} ${stat.mtimeNs} ${stat.size}`;
    if (held?.version !== version) held = { version, file: parse(readFileSync(path, 'utf8'), path) };
    return held.file;
  }

  return {
    reason(agent) {
      try {
        return own(current().off, agent)?.reason;
      } catch {
        return `${path} cannot be read; repair it, or remove it to switch every agent on`;
      }
    },
    list: () => current().off,
    async set(agent, off) {
      let changed = false;
      await replacePrivate(path, (text) => {
        const file = text === undefined ? EMPTY : parse(text, path);
        const { [agent]: before, ...rest } = file.off;
        changed = before?.reason !== off?.reason;
        const next: SwitchFile = { ...file, off: off ? { ...rest, [agent]: off } : rest };
        return `${JSON.stringify(next, null, 2)}\n`;
      });
      return changed;
    },
  };
}

function parse(text: string, path: string): SwitchFile {
  try {
    return check(SwitchFile, JSON.parse(text), 'the file');
  } catch (cause) {
    throw new Fault('unavailable', `${path} does not say which agents are off`, { cause });
  }
}
