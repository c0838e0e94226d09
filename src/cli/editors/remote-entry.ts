/**
 * A server at an address in a client's settings becomes a command that reaches it through tollbridge, and the reverse. Members
 * are exchanged where they stand: the values of headers become those of variables, so that a client resolves what it resolved
 * before in them, and no secret becomes an argument.
 */
import { applyEdits, type Edit, findNodeAtLocation, type Node } from 'jsonc-parser';
import { headerVariable, type RemoteServer, type Words } from './wrapped-words.ts';

/** The server at an address; why it stays as it is; undefined when the entry has no address. */
export function remoteIn(value: Node): RemoteServer | string | undefined {
  const text = (member: string) => findNodeAtLocation(value, [member])?.value as unknown;
  const url = text('url');
  if (typeof url !== 'string') return undefined;
  const type = text('type');
  if (!/^(https?:\/\/|\$\{)/.test(url) || !TYPES.has(type)) return 'its transport is not one of MCP over HTTP';
  const clients = CLIENTS_OWN.find((member) => findNodeAtLocation(value, [member]));
  if (clients) return `only the client itself can use its ${clients}`;
  const headers = findNodeAtLocation(value, ['headers']);
  if (headers && findNodeAtLocation(value, ['env'])) return 'it has both headers and variables';
  const sent = (headers?.children ?? []).map(({ children }) => children ?? []);
  if ((headers && headers.type !== 'object') || sent.some(([, each]) => typeof each?.value !== 'string'))
    return 'its headers are not texts';
  const names = sent.map(([name]) => String(name?.value));
  if (!names.every((name) => HEADER.test(name))) return 'its headers have names that no header has';
  return { url, transport: typeof type === 'string' && type !== 'http' ? type : undefined, headers: names };
}
const HEADER = /^[\w!#$%&'*+.^`|~-]+$/;
const TYPES: ReadonlySet<unknown> = new Set([undefined, 'http', 'streamable-http', 'streamableHttp', 'sse']);
/** Credentials that a program of the client makes, or that it obtains itself. */
const CLIENTS_OWN = ['headersHelper', 'oauth', 'auth'];

export function asCommand(text: string, value: Node, [first = '', ...args]: Words): string {
  const [key, url] = member(value, 'url')?.children ?? [];
  const edits: Edit[] = [
    replaced(key, '"command"'),
    replaced(url, `${JSON.stringify(first)}, "args": ${inline(args, args.indexOf('--url') + 1, textOf(text, url))}`),
  ];
  const type = findNodeAtLocation(value, ['type']);
  if (type) edits.push(replaced(type, '"stdio"'));
  const headers = member(value, 'headers');
  // An empty list of headers would be a list of variables that was there before.
  if (headers?.children?.[1]?.children?.length) {
    edits.push(replaced(headers.children?.[0], '"env"'));
    edits.push(...renamed(headers.children?.[1], (_, at) => headerVariable(at)));
  }
  return applyEdits(text, edits);
}

/** Undefined when the entry was changed since, so that it cannot be what it was. */
export function asRemote(text: string, value: Node, { url, transport, headers }: RemoteServer): string | undefined {
  const [command, args, env] = [member(value, 'command'), member(value, 'args'), member(value, 'env')];
  const [key, word] = command?.children ?? [];
  if (!word || !args || args.offset < word.offset) return undefined;
  const variables = (env?.children?.[1]?.children ?? []).map(({ children }) => children?.[0]?.value as unknown);
  if (variables.join('\0') !== headers.map((_, at) => headerVariable(at)).join('\0')) return undefined;
  const length = args.offset + args.length - word.offset;
  const written = args.children?.[1]?.children?.findLast((each) => each.value === url);
  const content = written ? textOf(text, written) : JSON.stringify(url);
  const edits: Edit[] = [replaced(key, '"url"'), { offset: word.offset, length, content }];
  const type = findNodeAtLocation(value, ['type']);
  if (type) edits.push(replaced(type, JSON.stringify(transport ?? 'http')));
  if (env && headers.length > 0) {
    edits.push(replaced(env.children?.[0], '"headers"'));
    edits.push(...renamed(env.children?.[1], (_, at) => headers.at(at) ?? ''));
  }
  return applyEdits(text, edits);
}

/** Words that were in the settings keep the text they had there: JSON has several for one. */
export function inline(words: Words, at = -1, text = ''): string {
  return `[${words.map((word, index) => (index === at ? text : JSON.stringify(word))).join(', ')}]`;
}

export function textOf(
  text: string,
  { offset, length }: Pick<Node, 'offset' | 'length'> = { offset: 0, length: 0 },
): string {
  return text.slice(offset, offset + length);
}

function member(value: Node, name: string): Node | undefined {
  return value.children?.find(({ children }) => children?.[0]?.value === name);
}

function replaced(node: Node | undefined, content: string): Edit {
  return { offset: node?.offset ?? 0, length: node?.length ?? 0, content };
}

function renamed(object: Node | undefined, name: (before: unknown, at: number) => string): readonly Edit[] {
  return (object?.children ?? []).map(({ children }, at) =>
    replaced(children?.[0], JSON.stringify(name(children?.[0]?.value, at))),
  );
}
