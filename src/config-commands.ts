/**
 * Programs the configuration starts, and where: `./agent` is meant from the file that says so, and not from the directory a
 * command is started in, where a cloned repository could put a program of that name.
 */
import type { ConfigFile } from './config-shape.ts';
import type { Json, JsonObject } from './model/schema.ts';

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

/** Where a tool server is started. */
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
