/**
 * Names at the common address: a server's name, two underscores, a tool's name. The same tools always have the same names; a
 * table maps them back, so that names are never parsed. Two tools that would get the same name get none. Pure.
 */
import { createHash } from 'node:crypto';
import type { Skill } from '../../../../src/index.ts';

const LONGEST = 64;
const HASH = 8;

export function exposedName(server: string, tool: string): string {
  const whole = `${server}__${tool}`;
  const plain = whole.replace(/[^A-Za-z0-9_-]/g, '_');
  if (plain.length <= LONGEST) return plain;
  const hash = createHash('sha256').update(whole).digest('hex').slice(0, HASH);
  return `${plain.slice(0, LONGEST - HASH - 1)}_${hash}`;
}

/** In the order of the names, so that a list is the same list each time. */
export function namesOf(skills: readonly Skill[]): ReadonlyMap<string, Skill> {
  const found = new Map<string, Skill[]>();
  for (const skill of skills) {
    const name = exposedName(skill.source ?? '', skill.name);
    found.set(name.toLowerCase(), [...(found.get(name.toLowerCase()) ?? []), skill]);
  }
  const alone = [...found.values()].flatMap((same) => (same.length === 1 && same[0] ? [same[0]] : []));
  const named = alone.map((skill) => [exposedName(skill.source ?? '', skill.name), skill] as const);
  return new Map(named.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** Prompt names may contain any character, so they are not changed. */
export function exposedPrompt(server: string, name: string): string {
  return `${server}__${name}`;
}

/** Undefined also when two servers could be meant. */
export function promptOf(exposed: unknown, servers: readonly string[]): { server: string; name: string } | undefined {
  if (typeof exposed !== 'string') return undefined;
  const [server, ...more] = servers.filter((each) => exposed.startsWith(`${each}__`));
  return server === undefined || more.length > 0 ? undefined : { server, name: exposed.slice(server.length + 2) };
}

const MARK = 'mcp+';

/** A resource of one server, distinguished from the same address at another. */
export function exposedUri(server: string, uri: string): string {
  return `${MARK}${server}:${uri}`;
}

export function uriOf(exposed: unknown): { readonly server: string; readonly uri: string } | undefined {
  const [, server, uri] = (typeof exposed === 'string' && /^mcp\+([a-z][a-z0-9_-]*):(.+)$/s.exec(exposed)) || [];
  return server && uri ? { server, uri } : undefined;
}
