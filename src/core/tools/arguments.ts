/**
 * Validates arguments against their tool's own schema before rules see them, so that a rule and a tool never read one value in two
 * ways: arguments that do not fit are refused, nothing is coerced. Compiled once per definition. A check that could take long runs
 * under a time limit, and exceeding it is a refusal.
 */
import { createContext, Script } from 'node:vm';
import type { Skill } from '../../model/resources.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import { type ArgumentsCheck, checkDirectMembers, compileArguments, sizeOf } from '../../model/tool-schema.ts';

/** Neither compiling a schema nor running it blocks the event loop for longer than this. */
const LONGEST_MS = 80;

/** Caches, collected with the definition. */
const checks = new WeakMap<Skill, ArgumentsCheck>();
const laxChecks = new WeakMap<Skill, ArgumentsCheck>();

/** Why these arguments do not fit this tool; undefined when they do. */
export function argumentsTrouble(skill: Skill, args: JsonObject): string | undefined {
  return checkOf(skill, args, checks, (schema) => schema);
}

/** Whether arguments that do not fit lack required ones, and nothing else is wrong: rule and tool then see the same absence. */
export function onlyLacks(skill: Skill, args: JsonObject): boolean {
  return checkOf(skill, args, laxChecks, ({ required: _, ...schema }) => schema) === undefined;
}

function checkOf(
  skill: Skill,
  args: JsonObject,
  known: WeakMap<Skill, ArgumentsCheck>,
  schemaOf: (schema: JsonObject) => JsonObject,
): string | undefined {
  let check = known.get(skill);
  if (!check) {
    check = checkFor(schemaOf((skill.input_schema ?? {}) as JsonObject));
    known.set(skill, check);
  }
  return check(args);
}

function checkFor(schema: JsonObject): ArgumentsCheck {
  const unlike = createSpelling(schema);
  const fits = createFit(schema);
  return (args) => {
    if (holdsPrototype(args)) return PROTOTYPE;
    const trouble = unlike(args) ?? fits(args);
    // In protocols that have both, null means that an argument is absent; a required one is then still missing.
    return trouble !== undefined && Object.values(args).includes(null)
      ? (unlike(args) ?? fits(withoutNull(args)))
      : trouble;
  };
}

function withoutNull(args: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(args).filter(([, value]) => value !== null));
}

function createFit(schema: JsonObject): ArgumentsCheck {
  if (Object.keys(schema).length === 0) return () => undefined;
  let plain: boolean;
  let check: ArgumentsCheck;
  try {
    const size = sizeOf(schema);
    if (size.trouble) return checkDirectMembers(schema);
    plain = size.plain;
    check = limited(() => compileArguments(schema));
  } catch {
    return checkDirectMembers(schema);
  }
  if (plain) return check;
  return (args) => {
    try {
      return limited(() => check(args));
    } catch {
      return `arguments could not be checked against the schema within ${LONGEST_MS} ms`;
    }
  };
}

/** `node:vm` is the only way to interrupt running code; it costs a tenth of a millisecond, so plain schemas do without. */
const box: { run: () => unknown } = { run: () => undefined };
const context = createContext(box);
const script = new Script('run()');

function limited<T>(run: () => T): T {
  box.run = run;
  try {
    for (let tries = 1; ; tries += 1) {
      const before = process.cpuUsage();
      try {
        return script.runInContext(context, { timeout: LONGEST_MS }) as T;
      } catch (cause) {
        // The limit is wall-clock time: on a busy machine it can pass with hardly any CPU time used.
        const { user, system } = process.cpuUsage(before);
        if (tries === MOST_TRIES || (user + system) / 1000 > LONGEST_MS / 2 || !isLate(cause)) throw cause;
      }
    }
  } finally {
    box.run = () => undefined;
  }
}
const MOST_TRIES = 3;

function isLate(cause: unknown): boolean {
  return (cause as { code?: unknown }).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT';
}

/** A server that copies arguments takes this member as a prototype: it would read members there that no rule saw. */
const PROTOTYPE = 'no member may be called __proto__';

function holdsPrototype(value: Json | undefined): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) return value.some(holdsPrototype);
  for (const name in value) {
    if (name === '__proto__' || holdsPrototype((value as JsonObject)[name])) return true;
  }
  return false;
}

/**
 * Some JSON readers take `Path` for `path`, and use the last of the two. A rule names one of them: a member that differs from a
 * declared one, or from another given one, only in case is refused.
 */
function createSpelling({ properties }: JsonObject): ArgumentsCheck {
  const declared = typeof properties === 'object' && properties !== null ? Object.keys(properties) : [];
  const exact: ReadonlySet<string> = new Set(declared);
  const spelled: ReadonlyMap<string, string> = new Map(declared.map((name) => [folded(name), name]));
  return (args) => {
    let seen: Map<string, string> | undefined;
    for (const name in args) {
      if (exact.has(name)) continue;
      const fold = folded(name);
      const other = spelled.get(fold) ?? seen?.get(fold);
      if (other !== undefined) return `${shown(name)} differs from ${shown(other)} only in case`;
      seen ??= new Map();
      seen.set(fold, name);
    }
    return undefined;
  };
}

/** Nearly every name consists of these, and is its own case fold. */
const PLAIN = /^[a-z0-9_.-]*$/;

function folded(name: string): string {
  return PLAIN.test(name) ? name : name.normalize('NFKC').toLowerCase();
}

function shown(name: string): string {
  return JSON.stringify(name.length > 80 ? `${name.slice(0, 79)}…` : name);
}
