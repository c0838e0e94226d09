/**
 * Acts that were approved when their agent asked, so that no second question is asked when the agent then performs the act
 * through us. An approval is frozen when it is given: the operation, the real path of the file, the content or the command as
 * shown. It covers exactly that act, once, while its call is open.
 */
import { resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { Actor, Answer, Effect, JsonObject } from '../../../../src/index.ts';
import type { AgentCall } from '../../client/acts/tool-calls.ts';
import { realPath } from '../../real-path.ts';
import { shownCommands, shownContents, shownDirectory, shownPaths, showsContents } from '../../shown-act.ts';
import { effectOfCall, inputOf, type ReportedCall, toolNameOf } from '../../translate.ts';
import type { Turn } from '../from-editor/turns.ts';

export interface Approvals {
  approved(turn: Turn, approval: Approved): Promise<void>;
  /**
   * Among the approvals whose calls are open now, when the agent's request has arrived: the one of exactly this act, which is thereby
   * used up. The agent may report the end of the call while the act is still being looked at.
   */
  covering(turn: Turn): (act: HeldOperation) => Covered | undefined;
}

export interface Approved {
  readonly call: AgentCall;
  /** What the editor showed of it: as it was asked about, and as it was when the answer came, where an update was between. */
  readonly shown: readonly ReportedCall[];
  readonly answer: Extract<Answer, { kind: 'approved' }>;
}

export type HeldOperation =
  | { readonly operation: 'read'; readonly path: string }
  | { readonly operation: 'write'; readonly path: string; readonly content: string }
  | {
      readonly operation: 'execute';
      readonly command: string;
      readonly args: readonly string[];
      readonly cwd: string;
      /** The number of environment variables. A question shows none. */
      readonly variables: number;
    }
  /** A call of one of our own tool servers, which the agent asked about before it made it. */
  | {
      readonly operation: 'call';
      readonly tool: string;
      readonly server: string | undefined;
      readonly arguments: JsonObject;
    };

export interface Covered {
  readonly callId: string;
  readonly by: Actor;
  readonly reason: string;
}

/** The actor for rules: an act that a rule allowed was approved by no person. */
export const SYSTEM_ACTOR: Actor = { id: 'system:acp', kind: 'system', scopes: ['*'], door: 'acp' };

interface Frozen {
  readonly call: AgentCall;
  readonly by: Actor;
  covers(act: HeldOperation): boolean;
}

export function createApprovals(person: Actor): Approvals {
  const approvals = new WeakMap<Turn, Frozen[]>();
  return {
    async approved(turn, { call, shown, answer }) {
      const held = await Promise.all(shown.map((each) => frozen(each, effectOfCall(each), turn.sessionKey.cwd)));
      // A rule's yes to the question is no answer of a person to the call.
      const asked = answer.ask_id !== undefined;
      const covers = (act: HeldOperation) =>
        act.operation === 'call'
          ? asked && shown.every((each) => isSameCall(each, act))
          : held.every((each) => each?.(act) === true);
      const list = approvals.get(turn) ?? [];
      // The approval was given in the editor's dialog; the covered act is answered with the same approval.
      list.push({ call, by: answer.by === person.id ? { ...person, interactive: true } : SYSTEM_ACTOR, covers });
      approvals.set(turn, list);
    },
    covering(turn) {
      const list = approvals.get(turn) ?? [];
      const open = list.filter(
        ({ call: { reported } }) => reported.status !== 'completed' && reported.status !== 'failed',
      );
      return (act) => {
        const found = open.find((each) => list.includes(each) && each.covers(act));
        if (!found) return undefined;
        list.splice(list.indexOf(found), 1);
        const { call, by } = found;
        return { callId: call.id, by, reason: `part of ${call.id}, which was approved` };
      };
    },
  };
}

/** The act that an approval of this call covers; undefined when no such act could go through us. */
async function frozen(reported: ReportedCall, effect: Effect, cwd: string): Promise<Frozen['covers'] | undefined> {
  if (effect === 'execute') {
    const commands = shownCommands(reported);
    const where = resolve(cwd, shownDirectory(reported) ?? '.');
    return (act) =>
      act.operation === 'execute' &&
      act.variables === 0 &&
      resolve(act.cwd) === where &&
      commands.some((command) => isSameCommand(command, act));
  }
  if (effect !== 'read' && effect !== 'write') return undefined;
  const lexical = shownPaths(reported).map((path) => resolve(cwd, path));
  const paths = new Map<string, string>();
  for (const path of lexical) paths.set(path, await realPath(path).catch(() => path));
  const isHere = (path: string) => [...paths.values()].includes(path);
  if (effect === 'read') return (act) => act.operation === 'read' && isHere(act.path);
  const anyContent = !showsContents(reported);
  const contents = new Map<string, ReadonlySet<string>>();
  for (const real of new Set(paths.values())) {
    const isFile = (path: string) => paths.get(resolve(cwd, path)) === real;
    contents.set(real, new Set(shownContents(reported, isFile)));
  }
  return (act) =>
    act.operation === 'write' && isHere(act.path) && (anyContent || contents.get(act.path)?.has(act.content) === true);
}

/** Agents put the server before the tool, in spellings of their own: `mcp__files__write`, `files_write`, `files.write`. */
function isSameCall(reported: ReportedCall, act: Extract<HeldOperation, { operation: 'call' }>): boolean {
  const plain = (text: string) => text.replace(/[^A-Za-z0-9]+/g, '_').toLowerCase();
  const names = [plain(act.tool), ...(act.server ? [plain(`${act.server}_${act.tool}`)] : [])];
  const called = plain(toolNameOf(reported)).replace(/^mcp_/, '');
  return names.includes(called) && isDeepStrictEqual(inputOf(reported), act.arguments);
}

const PLAIN_WORD = /^[\w@%+=:,./-]+$/;
const SHELLS = /^(?:.*\/)?(?:ba|z|da|k)?sh$/;

/** The same words; or the same command line, given to a shell or made of words that no shell would interpret. */
function isSameCommand(
  asked: string | readonly string[],
  { command, args }: { readonly command: string; readonly args: readonly string[] },
): boolean {
  const words = [command, ...args];
  if (typeof asked !== 'string') return asked.length === words.length && asked.every((word, at) => word === words[at]);
  if (args.length === 0) return command.trim() === asked;
  if (SHELLS.test(command) && args.length === 2 && (args[0] === '-c' || args[0] === '-lc')) return args[1] === asked;
  return words.every((word) => PLAIN_WORD.test(word)) && words.join(' ') === asked;
}
