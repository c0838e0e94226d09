/**
 * Agents that a person switched off while the gateway runs: one private file, read again when it changes, so
 * that every process of this installation knows at its next request. A file that cannot be read switches every agent off.
 */
import { filesIn } from '../../auth/private-file.ts';
import { Fault } from '../../model/faults.ts';
import { NonEmpty, Timestamp } from '../../model/schema.ts';
import { type Static, Type } from '../../model/type.ts';
import { check } from '../../model/validate.ts';
import { own } from '../../model/values/own.ts';
import type { PrivateFiles } from '../../ports/index.ts';

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

export const AGENT_SWITCHES = 'agents/switches.json';

/** Of a data directory, or of all gateways that share these files. */
export function openAgentSwitches(where: string | PrivateFiles): AgentSwitches {
  const files = filesIn(where);
  const path = files.nameOf(AGENT_SWITCHES);
  let held: { readonly version: string; readonly file: SwitchFile } | undefined;

  function current(): SwitchFile {
    const version = files.version(AGENT_SWITCHES);
    if (held?.version !== version) {
      const text = files.readNow(AGENT_SWITCHES);
      held = { version, file: text === undefined ? EMPTY : parse(text, path) };
    }
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
      await files.replace(AGENT_SWITCHES, (text) => {
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
