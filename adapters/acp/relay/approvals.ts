/**
 * Which calls were let through, so that what an agent then does for such a call through us is not asked about a second time.
 * A yes covers the file or the command it was about and nothing beside it, for as long as the call is open.
 */
import { resolve } from 'node:path';
import type { Actor, Answer, JsonObject } from '../../../src/index.ts';
import type { Call } from '../calls.ts';
import { listOf, textOf, within } from '../shapes.ts';
import { inputOf, type ToldCall } from '../translate.ts';
import type { Turn } from './turns.ts';

export interface Approvals {
  approved(turn: Turn, call: Call, answer: Extract<Answer, { kind: 'approved' }>): void;
  /** Who said yes to a call that this file, or this command, is what it is about. */
  covering(turn: Turn, act: { readonly path: string } | { readonly command: string }): Covered | undefined;
}
export interface Covered {
  readonly callId: string;
  readonly by: Actor;
  readonly reason: string;
}

/** Speaks for rules: what a rule let through was let through by nobody in particular. */
export const KEEPER: Actor = { id: 'system:acp', kind: 'system', scopes: ['*'], door: 'acp' };

const PATHS = ['path', 'file_path', 'filePath', 'abs_path', 'absolute_path', 'absolutePath'];
const COMMANDS = ['command', 'cmd', 'commandLine'];

export function createApprovals(person: Actor): Approvals {
  const given = new WeakMap<Turn, { call: Call; by: Actor }[]>();
  return {
    approved(turn, call, { by }) {
      const list = given.get(turn) ?? [];
      // The yes was given in the editor's dialog; what it covers is answered with that same yes.
      list.push({ call, by: by === person.id ? { ...person, interactive: true } : KEEPER });
      given.set(turn, list);
    },
    covering(turn, act) {
      const found = (given.get(turn) ?? []).findLast(({ call: { told } }) => {
        if (told.status === 'completed' || told.status === 'failed') return false;
        return 'path' in act
          ? pathsOf(told).some((path) => resolve(turn.place.cwd, path) === act.path)
          : commandsOf(told).includes(act.command.trim());
      });
      if (!found) return undefined;
      const { call, by } = found;
      return { callId: call.id, by, reason: `part of ${call.id}, which was approved` };
    },
  };
}

function pathsOf(call: ToldCall): readonly string[] {
  const places = listOf(call.locations).map((place) => within(place, 'path'));
  const diffs = listOf(call.content).map((item) => within(item, 'path'));
  const input: JsonObject = inputOf(call);
  return [...places, ...diffs, ...PATHS.map((name) => input[name])].flatMap((path) => textOf(path) ?? []);
}

function commandsOf(call: ToldCall): readonly string[] {
  const input = inputOf(call);
  return COMMANDS.flatMap((name) => {
    const value = input[name];
    const text = Array.isArray(value) ? value.join(' ') : textOf(value);
    return text ? [text.trim()] : [];
  });
}
