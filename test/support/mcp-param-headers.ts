/**
 * Whether the headers of a `tools/call` repeat the arguments that the tool's schema marks with `x-mcp-header`. The fixture's own
 * reading of the rule, so that a server and the gateway in front of it do not share one mistake.
 */
import type { Loose } from './mcp-fixture-asking.ts';

export function paramHeaderFault(schema: Loose, args: Loose | undefined, headers: Headers): string | undefined {
  for (const [name, path] of marked(schema)) {
    let value: unknown = args;
    for (const step of path) value = (value as Loose | undefined)?.[step];
    if (value === undefined || value === null) continue;
    const header = `Mcp-Param-${name}`;
    const raw = headers.get(header);
    if (raw === null) return `${header} is missing`;
    const said = plain(raw);
    if (said === undefined) return `${header} cannot be read`;
    const same = typeof value === 'number' ? said.trim() !== '' && Number(said) === value : said === String(value);
    if (!same) return `${header} says something else than the body`;
  }
  return undefined;
}

function* marked(schema: Loose, path: readonly string[] = []): Generator<readonly [string, readonly string[]]> {
  for (const [name, property] of Object.entries<Loose>(schema.properties ?? {})) {
    const here = [...path, name];
    if (typeof property?.['x-mcp-header'] === 'string') yield [property['x-mcp-header'], here];
    if (property && typeof property === 'object') yield* marked(property, here);
  }
}

/** Values that are not plain visible text come in base64, marked as such; a sloppy spelling of it is no spelling. */
function plain(raw: string): string | undefined {
  if (!/^[\t\x20-\x7e]*$/.test(raw)) return undefined;
  const coded = /^=\?base64\?(.*)\?=$/.exec(raw)?.[1];
  if (coded === undefined) return raw;
  const bytes = Buffer.from(coded, 'base64');
  if (bytes.toString('base64') !== coded) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
