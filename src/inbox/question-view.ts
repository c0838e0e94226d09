/**
 * A question as every surface shows it: first the whole act in our words, then the agent's own explanation, set apart.
 * Nothing is cut and nothing is invisible; a view without the whole act says so. Pure.
 */
import { createHash } from 'node:crypto';
import type { FileChange } from '../model/actions.ts';
import { type AskRecord, IN_PART, type PendingAct } from '../model/asks.ts';
import type { JsonObject } from '../model/schema.ts';
import { own } from '../model/values/own.ts';
import { visibleLine, visibleText } from '../model/values/visible-text.ts';
import { fileDiff } from './file-diff.ts';

/** One line, or several: the surface sets the lines of a block apart from its own. */
export interface Shown {
  readonly name: string;
  readonly value: string;
}

export interface QuestionView {
  readonly headline: string;
  readonly facts: readonly Shown[];
  readonly arguments: readonly Shown[];
  readonly changes: readonly Shown[];
  /** The agent's own explanation. Never a part of what is approved. */
  readonly words: readonly string[];
  /** The view holds everything that will run. Only then may it be approved. */
  readonly whole: boolean;
}

/** `act` is the whole act, for actors who may answer; without it the view shows the log's redacted version. */
export function viewQuestion(ask: AskRecord, act: PendingAct | undefined, now?: string): QuestionView {
  const about = (act ?? ask.action) as Partial<PendingAct>;
  const input = ask.kind === 'input';
  return {
    headline: input ? `${visibleLine(about.actor ?? 'An agent')} asks you for a value` : visibleLine(ask.question),
    facts: [
      ...shown('Proposed by', about.actor && [about.actor, about.door && `through ${about.door}`]),
      ...shown('Act', [about.tool ?? about.kind, about.server && `of ${about.server}`, kindOf(about)]),
      ...shown(
        'Effect',
        about.effect && [about.effect, about.evidence && `(${own(EVIDENCE, about.evidence) ?? about.evidence})`],
      ),
      ...shown('On', about.target && [about.target]),
      ...shown('In', about.cwd && [about.cwd]),
      ...shown('Asked because', ask.reason && [ask.reason, ask.rule_id && `[rule ${ask.rule_id}]`]),
      ...shown('Meant for', ask.to?.length > 0 && [ask.to.join(', ')]),
      { name: 'Answer until', value: `${ask.expires_at} (${timeFor(ask, now)})` },
    ],
    arguments: Object.entries(about.arguments ?? {}).map(([name, value]) => ({
      name: /^[\w.$-]+$/.test(name) ? name : visibleLine(JSON.stringify(name)),
      value: valueText(value),
    })),
    changes: (about.changes ?? []).map((change) => changeText(change, about.arguments ?? {})),
    words: wordsOf(ask, about),
    whole: act !== undefined || ask.metadata?.shown !== IN_PART,
  };
}

const EVIDENCE: Readonly<Record<string, string>> = {
  held: 'held: it runs through this gateway',
  asked: 'asked: the agent runs it itself and is trusted to obey',
  observed: 'observed: it is only reported',
};

function kindOf({ kind, tool }: Partial<PendingAct>): string | false {
  return kind !== undefined && tool !== undefined && kind !== 'tool' && kind !== tool && `(${kind})`;
}

function shown(
  name: string,
  words: readonly (string | false | null | undefined)[] | '' | false | null | undefined,
): Shown[] {
  if (!words) return [];
  const said = words.filter(Boolean).map(String);
  return said.length > 0 ? [{ name, value: visibleLine(said.join(' ')) }] : [];
}

/** Strings unquoted, unless they could be taken for another type or have surrounding space. */
export function valueText(value: unknown): string {
  if (typeof value !== 'string')
    return visibleText(JSON.stringify(value, undefined, isFlat(value) ? undefined : 2) ?? 'null');
  return AMBIGUOUS.test(value) ? visibleText(JSON.stringify(value)) : visibleText(value);
}
const AMBIGUOUS = /^$|^\s|\s$|^["{[]|^(?:true|false|null|-?\d[\d.eE+-]*)$/;

function isFlat(value: unknown): boolean {
  return typeof value !== 'object' || value === null || JSON.stringify(value).length <= 100;
}

/** Content that is also in the arguments is what will be written; any other content is the agent's description. */
function changeText(change: FileChange, args: JsonObject): Shown {
  const { what, text } = fileDiff(change);
  const hash = createHash('sha256').update(change.after).digest('hex');
  const held = Object.values(args).some(
    (value) => value === change.after || (typeof value === 'string' && value.replace(/^sha256:/, '') === hash),
  );
  const described = held ? what : `${what}, as the agent describes it`;
  return { name: `${visibleLine(change.path)} (${described})`, value: text };
}

function wordsOf(ask: AskRecord, { claims, arguments: args }: Partial<PendingAct>): readonly string[] {
  const title = claims?.title;
  const question = ask.kind === 'input' ? ask.question : undefined;
  const also = claims?.kind && `It calls this: ${claims.kind}`;
  const asked = ask.kind === 'input' && typeof args?.question === 'string' ? undefined : question;
  return [asked, title, also].flatMap((text) => (text ? [visibleText(text)] : []));
}

/** Without a clock: the time left when the question was asked, for messages read later than they are made. */
function timeFor({ expires_at, created_at }: AskRecord, now: string | undefined): string {
  const left = Date.parse(expires_at) - Date.parse(now ?? created_at);
  return now === undefined ? `${duration(left)} after it was asked` : left <= 0 ? 'over' : `${duration(left)} left`;
}

function duration(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h` : `${Math.floor(hours / 24)} days`;
}
