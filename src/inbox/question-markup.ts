/**
 * The parts of a question as elements, without a way to draw them: the page of a decision link writes them as HTML text, the console
 * draws them in the browser. Both show the same parts in the same order, and neither can forget one. Pure.
 */
import type { QuestionView, Shown } from './question-view.ts';

export type Markup = string | MarkupElement;
export interface MarkupElement {
  readonly tag: 'section' | 'aside' | 'dl' | 'dt' | 'dd' | 'h2' | 'h3' | 'pre' | 'p' | 'a' | 'code' | 'span';
  readonly class?: string;
  readonly href?: string;
  readonly children: readonly Markup[];
}

/** An act too long for a page: its download link, and the hash of the file. */
export interface Download {
  readonly href: string;
  readonly bytes: number;
  readonly sha256: string;
}

export function questionMarkup(view: QuestionView, download?: Download): readonly Markup[] {
  return [
    facts(view.facts),
    ...(download ? [downloadText(download)] : [...section('Arguments', view.arguments), ...files(view.changes)]),
    ...agentsWords(view.words),
  ];
}

function facts(rows: readonly Shown[]): Markup {
  return element(
    'dl',
    rows.flatMap(({ name, value }) => [element('dt', [name]), element('dd', [value])]),
  );
}

/** Each value is in a box of its own: nothing in it can pass for a part of the page. */
function section(title: string, rows: readonly Shown[]): readonly Markup[] {
  if (rows.length === 0) return [];
  const boxes = rows.flatMap(({ name, value }) => [element('h3', [name]), element('pre', [value])]);
  return [element('section', [element('h2', [title]), ...boxes])];
}

/** The lines of a change, each marked as added, removed or kept. */
function files(rows: readonly Shown[]): readonly Markup[] {
  if (rows.length === 0) return [];
  const boxes = rows.flatMap(({ name, value }) => [
    element('h3', [name]),
    element(
      'pre',
      value.split('\n').map((line, at) => element('span', [at === 0 ? line : `\n${line}`], lineKind(line))),
      'diff',
    ),
  ]);
  return [element('section', [element('h2', ['Files']), ...boxes])];
}

export function lineKind(line: string): string {
  return line.startsWith('+') ? 'added' : line.startsWith('-') ? 'removed' : line.startsWith('@@') ? 'hunk' : 'kept';
}

function agentsWords(words: readonly string[]): readonly Markup[] {
  if (words.length === 0) return [];
  const title = element('h2', ["In the agent's own words, not verified"]);
  return [element('aside', [title, ...words.map((text) => element('pre', [text]))])];
}

function downloadText({ href, bytes, sha256 }: Download): Markup {
  const link: MarkupElement = { tag: 'a', href, children: ['Download it whole'] };
  return element('section', [
    element('h2', ['The act']),
    element('p', [`It is ${bytes} bytes long. `, link, ' and read it before you answer.']),
    element('p', ['SHA-256 of the file: ', element('code', [sha256])]),
  ]);
}

function element(tag: MarkupElement['tag'], children: readonly Markup[], name?: string): MarkupElement {
  return { tag, children, ...(name && { class: name }) };
}
