/** All operations on one HTML page: without scripts, and without resources from other origins. */
import type { Operation } from '../../../mappings/harn.ts';
import { type Revision, VERSIONS } from '../revisions/revisions.ts';

const STYLE = `body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#1b1b1b;background:#fff}
table{border-collapse:collapse;width:100%;margin:0 0 1.5rem}td{padding:.25rem .6rem .25rem 0;border-top:1px solid #ddd;vertical-align:top}
code{font:13px ui-monospace,monospace}td:first-child{white-space:nowrap}
@media(prefers-color-scheme:dark){body{color:#e6e6e6;background:#161616}td{border-color:#333}a{color:#8ab4f8}}`;

export function docsPage({ version, operations }: Revision): string {
  const tags = [...new Set(operations.map(({ tag }) => tag))];
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Tollbridge: the Agents Protocol</title><style>${STYLE}</style>
<h1>The Agents Protocol, as served here</h1>
<p>Version <code>${version}</code>, sent with every request as <code>Harn-Agents-Protocol-Version</code>. Served:
${VERSIONS.map((each) => `<code>${each}</code>`).join(', ')}; this page and <a href="openapi.json">openapi.json</a> show the one that is
asked for.</p>
<pre><code>curl -H "Authorization: Bearer $TOKEN" -H "Harn-Agents-Protocol-Version: ${version}" …/v1/tasks</code></pre>
${tags.map((tag) => section(tag, operations)).join('\n')}
</html>
`;
}

function section(tag: string, operations: readonly Operation[]): string {
  const rows = operations.filter((operation) => operation.tag === tag).map(row);
  return `<h2>${escaped(tag)}</h2>\n<table>${rows.join('\n')}</table>`;
}

function row({ method, path, summary, scope }: Operation): string {
  const who = scope === null ? 'anyone' : `<code>${escaped(scope)}</code>`;
  return `<tr><td><code>${method} ${escaped(path)}</code><td>${escaped(summary)}<td>${who}`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
