/**
 * The pages a decision link opens: no scripts, nothing fetched from anywhere, readable on a phone. The act is shown whole, and the buttons stay in
 * sight. Enter in the field for a reason presses the first button, which is no.
 */
import type { AskRecord } from '../model/asks.ts';

const STYLE = `:root{color-scheme:light dark;--ink:#1a1d21;--soft:#5c6670;--line:#d9dee3;--paper:#fff;--ground:#f3f5f7;--yes:#0b6b3a;--no:#a4262c}
@media(prefers-color-scheme:dark){:root{--ink:#e8eaed;--soft:#9aa5b1;--line:#343a40;--paper:#1c1f23;--ground:#121417;--yes:#2f9e63;--no:#d9545a}}
*{box-sizing:border-box}body{margin:0;font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--ground)}
main{max-width:38rem;margin:8vh auto;padding:1.75rem;background:var(--paper);border:1px solid var(--line);border-radius:12px}
h1{font-size:1.3rem;line-height:1.35;margin:.2rem 0 1.1rem}p{margin:0 0 1rem}.from{color:var(--soft);font-size:.9rem;margin:0}
dl{margin:0 0 1.25rem;display:grid;grid-template-columns:max-content 1fr;gap:.35rem 1rem}dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
pre{margin:0;padding:.7rem .8rem;background:var(--ground);border-radius:8px;font:13px/1.45 ui-monospace,monospace;white-space:pre-wrap;overflow-wrap:anywhere}
label{display:block;margin:0 0 .3rem;color:var(--soft)}input{width:100%;padding:.6rem .7rem;margin:0 0 1.1rem;font:inherit;color:inherit;background:var(--ground);border:1px solid var(--line);border-radius:8px}
.choice{display:flex;gap:.75rem;position:sticky;bottom:0;margin:0 -1.75rem -1.75rem;padding:1rem 1.75rem;background:var(--paper);border-top:1px solid var(--line);border-radius:0 0 12px 12px}button{flex:1;padding:.75rem;font:inherit;font-weight:600;color:#fff;border:0;border-radius:8px;cursor:pointer}
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

/** The question, everything a person needs to answer it, and a form. Looking at it decides nothing. */
export function questionPage(ask: AskRecord): string {
  const args = (ask.action.arguments ?? {}) as object;
  const rows: readonly (readonly [string, string])[] = [
    ...(ask.action.tool ? [['what', `<code>${escaped(String(ask.action.tool))}</code>`] as const] : []),
    ...(Object.keys(args).length > 0
      ? [['with', `<pre>${escaped(JSON.stringify(args, undefined, 2))}</pre>`] as const]
      : []),
    ...(ask.action.actor ? [['asked by', escaped(String(ask.action.actor))] as const] : []),
    ...(ask.reason ? [['why you', `${escaped(ask.reason)}${byRule(ask.rule_id)}`] as const] : []),
    ['until', `<time datetime="${escaped(ask.expires_at)}">${escaped(plainTime(ask.expires_at))}</time>`],
  ];
  return page(
    'A question for you',
    `<form method="post">
<p class="from">Tollbridge asks</p>
<h1>${escaped(ask.question)}</h1>
<dl>${rows.map(([name, value]) => `<dt>${name}</dt><dd>${value}</dd>`).join('')}</dl>
${ask.kind === 'approval' ? APPROVAL_FORM : INPUT_FORM}
</form>`,
  );
}

const APPROVAL_FORM = `<label for="reason">A reason, if you like; it is kept with your answer</label>
<input id="reason" name="reason" maxlength="500" autocomplete="off">
<div class="choice"><button class="no" name="decision" value="deny">Deny</button><button class="yes" name="decision" value="approve">Approve</button></div>`;

const INPUT_FORM = `<label for="value">Your answer</label>
<input id="value" name="value" required autocomplete="off" autofocus>
<div class="choice"><button class="yes">Send</button></div>`;

/** What became of it. */
export function answerPage(title: string, text: string): string {
  return page(title, `<p class="from">Tollbridge</p>\n<h1>${escaped(title)}</h1>\n<p>${escaped(text)}</p>`);
}

const byRule = (rule: string | null | undefined) => (rule ? ` (rule <code>${escaped(rule)}</code>)` : '');

function plainTime(time: string): string {
  return `${time.slice(0, 10)} ${time.slice(11, 16)} UTC`;
}

/** What turns the reading direction round, or is not seen at all: with it an act could be shown as another. */
const UNSEEN = /[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

function escaped(text: string): string {
  return text
    .replace(UNSEEN, '\ufffd')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;');
}
