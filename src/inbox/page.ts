/**
 * The pages of a decision link: no scripts, nothing fetched from elsewhere, readable on a phone. The act is shown
 * whole, and the buttons stay in sight. Enter in the reason field presses the first button, which denies.
 */
import type { AskRecord } from '../model/asks.ts';
import { visibleText } from '../model/values/visible-text.ts';
import { type Download, type Markup, questionMarkup } from './question-markup.ts';
import type { QuestionView } from './question-view.ts';

const STYLE = `:root{color-scheme:light dark;--ink:#1a1d21;--soft:#5c6670;--line:#d9dee3;--paper:#fff;--ground:#f3f5f7;--yes:#0b6b3a;--no:#a4262c}
@media(prefers-color-scheme:dark){:root{--ink:#e8eaed;--soft:#9aa5b1;--line:#343a40;--paper:#1c1f23;--ground:#121417;--yes:#2f9e63;--no:#d9545a}}
*{box-sizing:border-box}body{margin:0;font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--ground)}
main{max-width:38rem;margin:8vh auto;padding:1.75rem;background:var(--paper);border:1px solid var(--line);border-radius:12px}
h1{font-size:1.3rem;line-height:1.35;margin:.2rem 0 1.1rem}p{margin:0 0 1rem}.from{color:var(--soft);font-size:.9rem;margin:0}
dl{margin:0 0 1.25rem;display:grid;grid-template-columns:max-content 1fr;gap:.35rem 1rem}dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
h2{font-size:1rem;margin:1.1rem 0 .4rem}h3{font:600 13px/1.45 ui-monospace,monospace;margin:.6rem 0 .2rem;overflow-wrap:anywhere}section,aside{margin:0 0 1.25rem}aside{padding:.1rem .9rem .9rem;border-left:4px solid var(--line);color:var(--soft)}.trouble{color:var(--no);font-weight:600}
pre{margin:0;padding:.7rem .8rem;background:var(--ground);border-radius:8px;font:13px/1.45 ui-monospace,monospace;white-space:pre-wrap;overflow-wrap:anywhere}
label{display:block;margin:0 0 .3rem;color:var(--soft)}input{width:100%;padding:.6rem .7rem;margin:0 0 1.1rem;font:inherit;color:inherit;background:var(--ground);border:1px solid var(--line);border-radius:8px}
.choice{display:flex;gap:.75rem;position:sticky;bottom:0;margin:0 -1.75rem -1.75rem;padding:1rem 1.75rem;background:var(--paper);border-top:1px solid var(--line);border-radius:0 0 12px 12px}button{flex:1;padding:.75rem;font:inherit;font-weight:600;color:#fff;border:0;border-radius:8px;cursor:pointer}
.added{color:var(--yes)}.removed{color:var(--no)}.hunk{color:var(--soft)}
.yes{background:var(--yes)}.no{background:var(--no)}button:focus-visible,input:focus-visible{outline:3px solid #4c9aff;outline-offset:2px}
@media(max-width:34rem){body{background:var(--paper)}main{margin:0;padding:1.1rem;border:0;border-radius:0}dl{display:block}dt{font-size:.85rem;margin-top:.7rem}
.choice{margin:0 -1.1rem -1.1rem;padding:.8rem 1.1rem;border-radius:0}}`;

function page(title: string, body: string): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>${escaped(title)}</title><style>${STYLE}</style></head>
<body><main>
${body}
</main></body></html>
`;
}

interface Page {
  readonly view: QuestionView;
  readonly kind: AskRecord['kind'];
  readonly download?: Download;
  /** Why the act cannot be shown whole; then it can only be denied. */
  readonly trouble?: string;
}

/** The question, everything a person needs to answer it, and a form. Opening it decides nothing. */
export function questionPage({ view, kind, download, trouble }: Page): string {
  const parts = [
    ...questionMarkup(view, download).map(html),
    ...(trouble ? [`<p class="trouble">This act cannot be approved here: ${escaped(trouble)}</p>`] : []),
  ];
  const form = kind === 'input' ? INPUT_FORM : trouble ? NO_FORM : APPROVAL_FORM;
  return page(
    'A question for you',
    `<form method="post">
<p class="from">Tollbridge asks</p>
<h1>${escaped(view.headline)}</h1>
${parts.join('\n')}
${form}
</form>`,
  );
}

function html(part: Markup): string {
  if (typeof part === 'string') return escaped(part);
  const { tag, class: name, href, children } = part;
  const attributes = `${name ? ` class="${escaped(name)}"` : ''}${href ? ` href="${escaped(href)}" download` : ''}`;
  return `<${tag}${attributes}>${children.map(html).join('')}</${tag}>`;
}

const APPROVAL_FORM = `<label for="reason">A reason, if you like; it is kept with your answer</label>
<input id="reason" name="reason" maxlength="500" autocomplete="off">
<div class="choice"><button class="no" name="decision" value="deny">Deny</button><button class="yes" name="decision" value="approve">Approve</button></div>`;

const NO_FORM = `<div class="choice"><button class="no" name="decision" value="deny">Deny</button></div>`;

const INPUT_FORM = `<label for="value">Your answer</label>
<input id="value" name="value" required autocomplete="off" autofocus>
<div class="choice"><button class="yes">Send</button></div>`;

/** The result of an answer. */
export function answerPage(title: string, text: string): string {
  return page(title, `<p class="from">Tollbridge</p>\n<h1>${escaped(title)}</h1>\n<p>${escaped(text)}</p>`);
}

function escaped(text: string): string {
  return visibleText(text)
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;');
}
