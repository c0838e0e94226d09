/**
 * Programs the configuration starts, and their paths: `./agent` is relative to the file that names it, and not to the
 * directory a command is started in, where a cloned repository could put a program of that name.
 */

import type { Json, JsonObject } from '../../model/schema.ts';
import type { ConfigFile } from './shape.ts';

type Named = Readonly<Record<string, JsonObject>>;

export function withOwnPrograms(config: ConfigFile, at: (path: string) => string): ConfigFile {
  const { agents, tools, harnesses, relays } = config;
  const parts = (named: Named) => mapped(named, (sections) => mapped(sections, (section) => fromFile(section, at)));
  return {
    ...config,
    ...(agents && { agents: parts(agents) }),
    ...(tools && {
      tools: mapped(parts(tools), (sections) => mapped(sections, (section) => withDirectory(section, at))),
    }),
    ...(harnesses && { harnesses: parts(harnesses) }),
    ...(relays && { relays: mapped(relays, (section) => withServers(section, at)) }),
  };
}

function withServers(section: JsonObject, at: (path: string) => string): JsonObject {
  const { mcp } = section;
  return Array.isArray(mcp) ? { ...section, mcp: mcp.map((server) => fromFile(server, at)) } : section;
}

/** The directory a tool server is started in is relative to the file too. */
function withDirectory(section: Json | undefined, at: (path: string) => string): Json | undefined {
  if (typeof section !== 'object' || section === null || Array.isArray(section)) return section;
  const { cwd } = section as JsonObject;
  return typeof cwd === 'string' ? { ...section, cwd: at(cwd) } : section;
}

function fromFile<T extends Json | undefined>(section: T, at: (path: string) => string): T {
  if (typeof section !== 'object' || section === null || Array.isArray(section)) return section;
  const { command } = section as JsonObject;
  const [program, ...rest] = Array.isArray(command) ? command : [];
  return typeof program === 'string' && /[\\/]/.test(program)
    ? { ...section, command: [at(program), ...rest] }
    : section;
}

function mapped<T>(from: Readonly<Record<string, T>>, each: (value: T) => T): Record<string, T> {
  return Object.fromEntries(Object.entries(from).map(([name, value]) => [name, each(value)]));
}
