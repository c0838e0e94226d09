/**
 * Two transcripts of one client, without and with the gateway. They are equal as they are, or, where the gateway speaks 2026-07-28 to
 * the client for a server that does not, equal once exactly what that revision prescribes is undone. A member with any other value,
 * or in any other place, is a difference.
 */
import { isDeepStrictEqual } from 'node:util';

export type Transcript = Readonly<Record<string, unknown>>;
type Members = Readonly<Record<string, unknown>>;

/** What may differ. */
export const DECLARED: readonly string[] = [
  'for clients that speak 2026-07-28 where the gateway does and the server does not: the number of the revision; in each result, resultType "complete" and the server’s own name and version in _meta; in each list and each resource that is read, ttlMs 0 and cacheScope "private"; tasks as the extension instead of a capability and of execution.taskSupport in tools',
];

const NEWEST = '2026-07-28';
const INFO = 'io.modelcontextprotocol/serverInfo';
const TASKS = { 'io.modelcontextprotocol/tasks': {} };
const LISTS: readonly string[] = ['tools', 'prompts', 'resources', 'templates', 'read'];
const RESULTS: readonly string[] = [...LISTS, 'called', 'unknown', 'nulled', 'prompted', 'nowhere'];

/** The parts that differ. */
export function differences(direct: Transcript, through: Transcript): readonly string[] {
  const converted = revisionOf(direct) !== NEWEST && revisionOf(through) === NEWEST;
  const [one, other] = converted ? [withoutTasks(direct), undone(through, direct)] : [direct, through];
  return Object.keys({ ...one, ...other }).filter((part) => !isDeepStrictEqual(one[part], other[part]));
}

function revisionOf({ opened }: Transcript): unknown {
  return membersOf(opened).protocolVersion;
}

function membersOf(value: unknown): Members {
  return typeof value === 'object' && value !== null ? (value as Members) : {};
}

/** What the gateway adds to the answers of an older server, taken away where it is exactly that. */
function undone(through: Transcript, direct: Transcript): Transcript {
  const { protocolVersion, serverInfo } = membersOf(direct.opened);
  const parts = Object.entries(through).map(([part, value]) => {
    if (part === 'opened') return [part, { ...withoutExtension(membersOf(value)), protocolVersion }];
    return [part, RESULTS.includes(part) ? withoutAdded(value, serverInfo, LISTS.includes(part)) : value];
  });
  return Object.fromEntries(parts);
}

function withoutAdded(value: unknown, server: unknown, list: boolean): unknown {
  if (Array.isArray(value) || typeof value !== 'object' || value === null) return value;
  const { _meta, ...rest } = value as Members;
  const { [INFO]: info, ...meta } = membersOf(_meta);
  const own = isDeepStrictEqual(info, server) ? meta : membersOf(_meta);
  const kept = Object.entries(rest).filter(
    ([name, each]) =>
      !(name === 'resultType' && each === 'complete') &&
      !(list && name === 'ttlMs' && each === 0) &&
      !(list && name === 'cacheScope' && each === 'private'),
  );
  return { ...Object.fromEntries(kept), ...(Object.keys(own).length > 0 && { _meta: own }) };
}

function withoutExtension(opened: Members): Members {
  const { extensions, ...capabilities } = membersOf(opened.capabilities);
  return isDeepStrictEqual(extensions, TASKS) ? { ...opened, capabilities } : opened;
}

/** An older server's own words about tasks, which the extension replaces. */
function withoutTasks(direct: Transcript): Transcript {
  const opened = membersOf(direct.opened);
  const { tasks: _, ...capabilities } = membersOf(opened.capabilities);
  const plain = (tool: unknown) => {
    const { execution: _, ...rest } = membersOf(tool);
    return rest;
  };
  const parts = Object.entries(direct).map(([part, value]) => {
    if (!RESULTS.includes(part) || Array.isArray(value) || typeof value !== 'object' || value === null)
      return [part, value];
    // Two SDKs show members of the newest revision where the server sent none: one an empty scope, one this type.
    const unsent = membersOf(value).cacheScope === '' ? ['cacheScope', 'ttlMs'] : [];
    if (membersOf(value).resultType === 'complete') unsent.push('resultType');
    return [part, Object.fromEntries(Object.entries(membersOf(value)).filter(([name]) => !unsent.includes(name)))];
  });
  const all = Object.fromEntries(parts) as Transcript;
  const { tools } = all;
  const listed = Array.isArray(tools) ? tools.map(plain) : withTools(tools, plain);
  return { ...all, opened: { ...opened, capabilities }, ...(tools !== undefined && { tools: listed }) };
}

function withTools(result: unknown, plain: (tool: unknown) => unknown): unknown {
  const { tools, ...rest } = membersOf(result);
  return Array.isArray(tools) ? { ...rest, tools: tools.map(plain) } : result;
}
