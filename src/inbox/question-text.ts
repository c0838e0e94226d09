/**
 * A question as text, for terminals and for dialogs of other programs. A value of several lines has a bar before each of them,
 * so that no line of it can pass for one of ours.
 */
import type { Actor } from '../model/actions.ts';
import type { AskRecord, PendingAct } from '../model/asks.ts';
import type { Bridge } from '../ports.ts';
import { type QuestionView, type Shown, viewQuestion } from './question-view.ts';

/** Longer than anyone reads in a dialog, and than some clients show. */
const LONGEST_DIALOG = 16_000;

/** Everything but the headline. */
export function detailsText(view: QuestionView): string {
  const lines = view.facts.flatMap((fact) => lined(fact));
  if (view.arguments.length > 0) lines.push('Arguments:', ...view.arguments.flatMap((each) => lined(each, '  ')));
  for (const change of view.changes) lines.push(`File ${change.name}:`, ...barred(change.value, '  '));
  if (!view.whole) lines.push(NOT_WHOLE);
  if (view.words.length > 0) lines.push(WORDS, ...view.words.flatMap((words) => barred(words, '  ')));
  return lines.join('\n');
}
const WORDS = "In the agent's own words, which nobody has checked:";
const NOT_WHOLE = 'Parts of this act are hidden here (redacted, or too long).';

export interface Dialog {
  readonly headline: string;
  readonly text: string;
  /** A yes given to this dialog counts. */
  readonly whole: boolean;
}

/** For a surface that has one text to show it in. What does not fit is not cut: the text says where to answer instead. */
export function dialogText(ask: AskRecord, act?: PendingAct): Dialog {
  const view = viewQuestion(ask, act);
  const details = detailsText(view);
  const { headline } = view;
  if (ask.kind === 'input' || (view.whole && details.length <= LONGEST_DIALOG)) {
    return { headline, text: `${headline}\n${details}`, whole: true };
  }
  const why = view.whole
    ? `This act is ${details.length} characters long, too long to be shown here.`
    : 'This act cannot be shown whole here: parts of it are redacted, or too long.';
  const facts = detailsText({ ...view, arguments: [], changes: [], words: [], whole: true });
  const kept = facts.length <= LONGEST_DIALOG ? `\n${facts}` : '';
  return { headline, text: `${headline}${kept}\n${why} ${elsewhere(ask.id)}`, whole: false };
}

/** The same for someone in particular: with the whole act where they may answer, otherwise with what the log has of it. */
export async function dialogFor(bridge: Pick<Bridge, 'pendingAct'>, actor: Actor, ask: AskRecord): Promise<Dialog> {
  const act = ask.kind === 'input' ? undefined : await bridge.pendingAct(actor, ask.id).catch(() => undefined);
  return dialogText(ask, act);
}

/** Where an act is shown whole, and a yes to it counts. */
function elsewhere(askId: string): string {
  return `A yes given here does not count. See it whole with "tollbridge approvals", and answer with "tollbridge approve ${askId}", with the link you were sent, or at /v1/permission-requests/${askId}.`;
}

function lined({ name, value }: Shown, indent = ''): readonly string[] {
  if (!value.includes('\n')) return [`${indent}${name}: ${value}`];
  return [`${indent}${name}:`, ...barred(value, `${indent}  `)];
}

function barred(text: string, indent: string): readonly string[] {
  return text === '' ? [] : text.split('\n').map((line) => `${indent}| ${line}`);
}
