/**
 * A question as text, for terminals and for dialogs of other programs. Each line of a multi-line value starts with a
 * bar, so that none of them can pass for a line of ours.
 */
import type { Actor } from '../model/actions.ts';
import type { AskRecord, PendingAct } from '../model/asks.ts';
import type { Bridge } from '../ports/index.ts';
import { type QuestionView, type Shown, viewQuestion } from './question-view.ts';

/** Longer than people read in a dialog, and than some clients show. */
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
const WORDS = "In the agent's own words, not verified:";
const NOT_WHOLE = 'Parts of this act are hidden here (redacted, or too long).';

export interface Dialog {
  readonly headline: string;
  readonly text: string;
  /** An approval given in this dialog counts. */
  readonly whole: boolean;
}

/**
 * For a surface that shows a single text. An act that does not fit is not cut: the text says where to answer instead.
 */
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

/** The same for one actor: with the whole act if the actor may answer, otherwise with the log's redacted version. */
export async function dialogFor(bridge: Pick<Bridge, 'pendingAct'>, actor: Actor, ask: AskRecord): Promise<Dialog> {
  const act = ask.kind === 'input' ? undefined : await bridge.pendingAct(actor, ask.id).catch(() => undefined);
  return dialogText(ask, act);
}

/** Where the act is shown whole and can be approved. */
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
