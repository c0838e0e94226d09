/** Addresses in every spelling that a server treats as the same. */

/** An address somewhere in a text. */
const MENTIONED = /\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s'"`<>|;(){}\\]+/gi;

export function isUrl(text: string): boolean {
  return /^[a-z][a-z0-9+.-]{1,20}:\/\/\S/i.test(text) && !isFileAddress(text);
}

export function urlsIn(text: string): readonly string[] {
  return (
    text
      .match(MENTIONED)
      ?.filter((url) => !isFileAddress(url))
      .slice(0, 64) ?? []
  );
}

/** As written, as a URL parser normalizes it, and without its user, its default port, and a trailing dot of the host. */
export function urlSpellings(written: string): readonly string[] {
  const text = written.trim();
  const out = new Set([text]);
  const parsed = parse(text) ?? parse(`https://${text}`);
  if (!parsed) return [...out];
  const bare = parse(text) === undefined;
  for (const url of bare ? [parsed, parse(`http://${text}`)] : [parsed]) {
    if (!url) continue;
    out.add(url.href);
    url.username = '';
    url.password = '';
    out.add(url.href);
    if (url.hostname.endsWith('.')) {
      url.hostname = url.hostname.replace(/\.+$/, '');
      out.add(url.href);
    }
    out.add(decoded(url.href));
    if (url.pathname === '/' && !url.search && !url.hash) out.add(url.href.replace(/\/$/, ''));
  }
  return [...out];
}

/** The one spelling that says where a request goes: allowing rules are matched against it. */
export function canonicalUrl(written: string): string | undefined {
  const url = parse(written.trim());
  return url && !url.username && !url.password ? url.href : undefined;
}

function parse(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined;
}

function decoded(text: string): string {
  try {
    return decodeURI(text);
  } catch {
    return text;
  }
}

/** An address of a file on this machine, also as `git+file:`: it is treated as a path. */
export function isFileAddress(text: string): boolean {
  return /^(?:[a-z][a-z0-9+.-]*\+)?file:/i.test(text);
}
