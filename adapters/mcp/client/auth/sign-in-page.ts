/** The pages of a caller's sign-in. They hold no script, load nothing, and are shown in no frame. */
import type { ServerResponse } from 'node:http';

/** HTML, as opposed to text. */
interface Markup {
  readonly html: string;
}

/** Builds markup; every value is escaped unless it is markup itself. */
export function markup(parts: TemplateStringsArray, ...values: readonly (string | Markup)[]): Markup {
  const text = parts.map((part, at) => {
    const value = values[at];
    return part + (value === undefined ? '' : typeof value === 'string' ? escaped(value) : value.html);
  });
  return { html: text.join('') };
}

export function sendPage(
  response: ServerResponse,
  status: number,
  title: string,
  body: Markup,
  { onward, cookie }: { readonly onward?: string; readonly cookie?: string } = {},
): void {
  const refresh = onward === undefined ? { html: '' } : markup`<meta http-equiv="refresh" content="0;url=${onward}">`;
  const page = markup`<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">${refresh}<title>${title}</title><style>body{font:16px/1.5 system-ui,sans-serif;max-width:38rem;margin:3rem auto;padding:0 1rem}code{font-size:1.4rem;letter-spacing:.1em}</style></head><body><h1>${title}</h1>${body}</body></html>`;
  response.writeHead(status, {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy':
      "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    'cache-control': 'no-store',
    // With `no-referrer` a browser sends `Origin: null` with the form, which the gateway refuses.
    'referrer-policy': 'same-origin',
    'x-content-type-options': 'nosniff',
    'x-robots-tag': 'noindex',
    ...(cookie !== undefined && { 'set-cookie': cookie }),
  });
  response.end(page.html);
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (mark) => `&#${mark.charCodeAt(0)};`);
}
