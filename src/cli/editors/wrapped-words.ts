/**
 * The words that put a command, or a server at an address, behind tollbridge; and the reverse, for the exact words that are
 * written here. Words that a person wrote by hand are recognised, and never taken apart.
 */

export type Words = readonly string[];

/** A server at an address. The values of its headers are in variables, because arguments can be read by every process. */
export interface RemoteServer {
  readonly url: string;
  /** As the client calls it, where that is not `http`. */
  readonly transport: string | undefined;
  readonly headers: readonly string[];
}
export type Wrapped = { readonly command: Words } | { readonly remote: RemoteServer };

/** Tollbridge by its name, or by the file it is started from when it is not installed. */
const OURS = /tollbridge|[\\/]src[\\/]main\.[jt]s$/;
/** The same, as it is written here. */
const WRITTEN = /(^|[\\/])tollbridge$|[\\/](tollbridge|src[\\/]main)(\.[a-z0-9]+)?$/i;

export const headerVariable = (at: number) => `TOLLBRIDGE_HEADER_${at + 1}`;

/** Agents are known by their session, and need no name. */
const naming = (speaks: string, name: string): Words => (speaks === 'mcp' ? ['--name', name] : []);

export function commandWords(ours: Words, speaks: string, name: string, command: Words): Words {
  return [...ours, speaks, ...naming(speaks, name), '--', ...command];
}

export function remoteWords(ours: Words, name: string, { url, transport, headers }: RemoteServer): Words {
  const sent = headers.flatMap((header, at) => ['--header-env', `${header}=${headerVariable(at)}`]);
  return [...ours, 'mcp', '--name', name, '--url', url, ...(transport ? ['--transport', transport] : []), ...sent];
}

/** Whether these words start tollbridge in front of something, however it is started. */
export function goesThrough(words: Words, speaks: string): boolean {
  return partsOf(words, speaks) !== undefined;
}

/** The name these words give to the server. */
export function nameIn(words: Words, speaks: string): string | undefined {
  const { options = [] } = partsOf(words, speaks) ?? {};
  const at = options.indexOf('--name');
  return at < 0 ? undefined : options[at + 1];
}

/** What is behind the words, if they are in the form written here; undefined when their options were written by hand. */
export function unwrapped(words: Words, speaks: string, entry: string): Wrapped | undefined {
  const parts = partsOf(words, speaks);
  if (!parts) return undefined;
  const { options, command, start } = parts;
  if (!start.some((word) => WRITTEN.test(word))) return undefined;
  const name = nameIn(words, speaks);
  if (name !== undefined && !isNameOf(name, entry)) return undefined;
  const rest = name === undefined ? options : options.slice(2);
  if (name !== undefined && options[0] !== '--name') return undefined;
  // Before names were written, nothing stood between the protocol and the command.
  if (command) return rest.length === 0 ? { command } : undefined;
  const [, url = ''] = rest;
  const transport = rest[2] === '--transport' ? rest[3] : undefined;
  const headers = rest.slice(transport ? 4 : 2).flatMap((word, at) => (at % 2 === 1 ? [word.split('=')[0] ?? ''] : []));
  const remote = { url, transport, headers };
  const same = name !== undefined && remoteWords([], name, remote).slice(3).join('\0') === rest.join('\0');
  return same ? { remote } : undefined;
}

interface Parts {
  /** What starts tollbridge. */
  readonly start: Words;
  readonly options: Words;
  readonly command?: Words;
}

function partsOf(words: Words, speaks: string): Parts | undefined {
  const end = words.indexOf('--');
  const before = end < 0 ? words : words.slice(0, end);
  const ours = before.findIndex((word) => OURS.test(word));
  const at = before.indexOf(speaks, ours + 1);
  if (ours < 0 || at < 0) return undefined;
  const [start, options] = [before.slice(0, at), before.slice(at + 1)];
  if (end >= 0) return { start, options, command: words.slice(end + 1) };
  return options.includes('--url') || options.includes('--server') ? { start, options } : undefined;
}

/** A name for rules, the log and tool names, made of an entry's name. */
export function plainName(entry: string): string {
  return entry.replace(/[^A-Za-z0-9_.-]+/g, '-').replace(/^-+|-+$/g, '') || 'server';
}

function isNameOf(name: string, entry: string): boolean {
  const plain = plainName(entry);
  return name === plain || (name.startsWith(`${plain}-`) && /^\d+$/.test(name.slice(plain.length + 1)));
}

export interface ServerNames {
  /** A name that no other server has. The same server has the same name wherever it stands. */
  of(entry: string, identity: Words): string;
  /** A server that has a name already. */
  taken(name: string, identity: Words): void;
}

/** Definitions and rules are kept by a server's name, so two servers never share one. */
export function createServerNames(): ServerNames {
  const taken = new Map<string, string>();
  const key = (identity: Words) => identity.join('\0');
  return {
    taken: (name, identity) => void taken.set(name, key(identity)),
    of(entry, identity) {
      const plain = plainName(entry);
      for (let count = 1; ; count += 1) {
        const name = count === 1 ? plain : `${plain}-${count}`;
        if ((taken.get(name) ?? key(identity)) !== key(identity)) continue;
        taken.set(name, key(identity));
        return name;
      }
    },
  };
}
