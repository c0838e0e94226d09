/** Turns plain words into the demo agent's steps. Pure: the same text always gives the same script. */

import type { Json, JsonObject } from '../model/schema.ts';
import { isObject } from '../model/values/is-object.ts';
import { own } from '../model/values/own.ts';
import type { Effect } from '../model/words.ts';

export type Step =
  | { readonly do: 'say'; readonly text: string }
  | {
      readonly do: 'call';
      readonly tool: string;
      readonly target: string;
      readonly arguments: JsonObject;
      readonly effect: Effect;
      /** Completes "I was not allowed to …". */
      readonly intent: string;
    }
  | { readonly do: 'artifact' }
  | { readonly do: 'recall' }
  | { readonly do: 'input'; readonly name: string }
  | { readonly do: 'remember'; readonly text: string; readonly scope: string }
  | { readonly do: 'ask'; readonly question: string }
  | { readonly do: 'work'; readonly steps: number }
  | { readonly do: 'handoff'; readonly to: string; readonly work: string }
  | { readonly do: 'fail'; readonly code: string };

export const HELP =
  'I am the demo agent. Say: hello · read <note> · write <note> <text> · delete <note> · send <text> to <someone> · ' +
  'use <tool> <text> · artifact · recall · check input <name> · remember [for the session|persona|workspace|tenant] <text> · ask <question> · wait <steps> · handoff to <agent>: <work> · fail <code>. Join steps with "then".';

const GREETING = 'Hello! I am the demo agent: no network, no keys, always the same answer to the same words.';
/** Text beyond this is not read. */
const LONGEST = 10_000;
const MOST_STEPS = 50;
const MOST_WORK = 10_000;

/** Whitespace is collapsed to single spaces before matching, so that no pattern can backtrack. */
type Verb = readonly [pattern: RegExp, step: (words: readonly string[]) => Step];

const VERBS: readonly Verb[] = [
  [/\bread (?:the )?(\S+)/i, ([note = '']) => call('read_note', 'read', note, { name: note }, `read ${note}`)],
  [
    /\bwrite (\S+)(?: (.*))?/i,
    ([note = '', text = '']) => call('write_note', 'write', note, { name: note, text }, `write ${note}`),
  ],
  [/\bdelete (\S+)/i, ([note = '']) => call('delete_note', 'delete', note, { name: note }, `delete ${note}`)],
  [
    /\bsend (.*) to (\S+)$/i,
    ([text = '', to = '']) => call('send_mail', 'send', to, { to, text }, `send mail to ${to}`),
  ],
  [
    /\bsend (.+)/i,
    ([text = '']) => call('send_mail', 'send', 'everyone', { to: 'everyone', text }, 'send mail to everyone'),
  ],
  [/\buse (\S+)(?: (.*))?/i, ([tool = '', text = '']) => call(tool, 'unknown', tool, { text }, `use ${tool}`)],
  [/\bartifact\b/i, () => ({ do: 'artifact' })],
  [/\brecall\b/i, () => ({ do: 'recall' })],
  [/\bcheck input (\S+)/i, ([name = '']) => ({ do: 'input', name })],
  [
    /\bremember (?:for the (session|persona|workspace|tenant) )?(.+)/i,
    ([scope, text = '']) => ({ do: 'remember', text, scope: scope?.toLowerCase() ?? 'session' }),
  ],
  [/\bask\b ?(.*)/i, ([question]) => ({ do: 'ask', question: question || 'What should I know?' })],
  [/\b(?:long|wait)\b(?:\D*(\d+))?/i, ([steps]) => ({ do: 'work', steps: Math.min(Number(steps ?? 20), MOST_WORK) })],
  [/\bhandoff (?:to )?([^\s:]+)(?::? (.+))?/i, ([to = '', work]) => ({ do: 'handoff', to, work: work ?? 'hello' })],
  [/\bfail\b(?: (?:with )?([a-z][a-z0-9_]*))?/i, ([code]) => ({ do: 'fail', code: code ?? 'demo_failure' })],
  [/\b(?:hello|hi)\b/i, () => ({ do: 'say', text: GREETING })],
];

/** At least one step: unknown words are answered with the help text. */
export function readScript(text: string): readonly Step[] {
  const clauses = text
    .slice(0, LONGEST)
    .replace(/\s+/g, ' ')
    .split(/\bthen\b/i)
    .map((clause) => clause.trim())
    .filter((clause) => clause !== '');
  const steps = clauses.slice(0, MOST_STEPS).map(readClause);
  return steps.length > 0 ? steps : [{ do: 'say', text: HELP }];
}

/** The verb that comes first in the clause counts: "send hello to ana" sends. */
function readClause(clause: string): Step {
  let first: { readonly at: number; readonly step: Step } | undefined;
  for (const [pattern, step] of VERBS) {
    const match = pattern.exec(clause);
    if (match && (!first || match.index < first.at)) first = { at: match.index, step: step(match.slice(1)) };
  }
  return first?.step ?? { do: 'say', text: HELP };
}

/** The step a model's answer asks for: a spelled-out step, or the first one in its words. */
export function stepFrom(response: Json): Step {
  const { step, text, choices } = (typeof response === 'object' && response !== null ? response : {}) as JsonObject;
  if (isStep(step)) return step;
  const [choice] = Array.isArray(choices) ? choices : [];
  const said = [response, text, ((choice as JsonObject | undefined)?.message as JsonObject | undefined)?.content];
  return readScript(said.find((words) => typeof words === 'string') ?? '')[0] as Step;
}

function isStep(value: Json | undefined): value is Step & JsonObject {
  if (!isObject(value)) return false;
  const step = value as JsonObject;
  const members = MEMBERS[step.do as Step['do']];
  if (!Object.hasOwn(MEMBERS, String(step.do)) || !members) return false;
  return members.every(([name, type]) => typeof own(step, name) === type && own(step, name) !== null);
}
const MEMBERS: Readonly<Record<Step['do'], readonly (readonly [string, string])[]>> = {
  say: [['text', 'string']],
  call: [
    ['tool', 'string'],
    ['target', 'string'],
    ['arguments', 'object'],
    ['effect', 'string'],
    ['intent', 'string'],
  ],
  artifact: [],
  recall: [],
  input: [['name', 'string']],
  remember: [
    ['text', 'string'],
    ['scope', 'string'],
  ],
  ask: [['question', 'string']],
  work: [['steps', 'number']],
  handoff: [
    ['to', 'string'],
    ['work', 'string'],
  ],
  fail: [['code', 'string']],
};

function call(tool: string, effect: Effect, target: string, args: JsonObject, intent: string): Step {
  return { do: 'call', tool, effect, target, arguments: args, intent };
}

/** One line of a plan. */
export function describeStep(step: Step): string {
  switch (step.do) {
    case 'say':
      return 'answer';
    case 'call':
      return step.intent;
    case 'artifact':
      return 'produce a file and a patch';
    case 'recall':
      return 'say what it remembers';
    case 'input':
      return `check the private input ${step.name}`;
    case 'remember':
      return `remember for the ${step.scope}`;
    case 'ask':
      return `ask: ${step.question}`;
    case 'work':
      return `work through ${step.steps} steps`;
    case 'handoff':
      return `hand off to ${step.to}`;
    case 'fail':
      return 'fail';
  }
}

/** The words in a task's input, whatever shape it has: a message, or an object with a text in it. */
export function textOf(input: JsonObject): string {
  if (Array.isArray(input.parts)) {
    return input.parts.map((part: JsonObject) => (part?.type === 'text' ? String(part.text ?? '') : '')).join(' ');
  }
  for (const name of ['text', 'prompt', 'message', 'input', 'content'] as const) {
    const found = input[name];
    if (typeof found === 'string') return found;
    if (isObject(found)) return textOf(found as JsonObject);
  }
  return '';
}
