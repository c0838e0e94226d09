/**
 * What the configuration says about tools beside the rules: bundles, which leave a persona or a principal only some of them; and
 * texts in results that are redacted, withheld, or taint the session. Neither widens anything.
 */
import type { Action, ToolResult } from '../model/actions.ts';
import type { Json } from '../model/schema.ts';
import { isObject } from '../model/values/is-object.ts';
import { block, noObjection, type PureEngine, pureEngine } from './engine.ts';
import { matchesGlob } from './rules/glob.ts';

const NAME = 'tools';

export interface Bundle {
  readonly name: string;
  /** `server/tool`, or the name of a tool; `*` stands for any part. */
  readonly tools: readonly string[];
  readonly personas: readonly string[];
  readonly principals: readonly string[];
}

export interface ResultRule {
  readonly server: string;
  readonly find: readonly string[];
  readonly tools?: readonly string[] | undefined;
  readonly then: 'redact' | 'block' | 'taint';
  readonly say?: string | undefined;
}

export function createToolPolicy(bundles: readonly Bundle[], results: readonly ResultRule[]): PureEngine {
  const compiled = results.map((rule) => ({ ...rule, pattern: patternOf(rule.find) }));
  return {
    ...pureEngine(NAME, (action) => {
      const { tool, server, persona, actor } = action;
      if (action.kind !== 'tool' || !tool || !server) return noObjection(NAME, 'bundles speak of served tools');
      const mine = bundles.filter(
        ({ personas, principals }) =>
          (persona && personas.includes(persona.name)) || principals.some((glob) => matchesGlob(glob, actor.id)),
      );
      const names = [tool, `${server}/${tool}`];
      if (
        mine.length === 0 ||
        mine.some(({ tools }) => tools.some((glob) => names.some((each) => matchesGlob(glob, each))))
      )
        return noObjection(NAME, 'in a bundle, or in no need of one');
      return block(
        NAME,
        'not_in_bundle',
        `${tool} of ${server} is not in ${mine.map(({ name }) => name).join(' or ')}`,
      );
    }),
    inspect(action, result) {
      const mine = compiled.filter(({ server, tools }) => server === action.server && isAbout(action, tools));
      return mine.length === 0 ? result : mine.reduce((seen, rule) => applied(seen, rule, action), result);
    },
  };
}

/** The result of a call that became a task names no tool: a rule about any tool may be about it. */
function isAbout({ kind, tool, attributes }: Action, tools: readonly string[] | undefined): boolean {
  if (tool === undefined) return kind === 'tool' || tools === undefined;
  const names = [tool, ...(typeof attributes?.own_name === 'string' ? [attributes.own_name] : [])];
  return tools?.some((glob) => names.some((name) => matchesGlob(glob, name))) ?? true;
}

function applied(result: ToolResult, rule: ResultRule & { readonly pattern: RegExp }, action: Action): ToolResult {
  const { pattern, then, say, server } = rule;
  const parts = [result.output, result.error ?? null, result.ext ?? null];
  if (!parts.some((part) => holds(part, pattern))) return result;
  if (then === 'taint') return { ...result, taint: { server, what: action.tool ?? '' } };
  if (then === 'block') {
    const { output: _, ext: _ext, artifacts: _artifacts, ...rest } = result;
    const withheld = action.kind === 'tool' ? 'the call ran, and its result was withheld' : 'the answer was withheld';
    const error = `${withheld}: ${say ?? 'it holds a text that is not passed on'}`;
    return { ...rest, status: 'error', output: null, error, code: 'result_withheld' };
  }
  const { error, ext } = result;
  return {
    ...result,
    output: redacted(result.output, pattern),
    ...(error !== undefined && { error: redacted(error, pattern) as string }),
    ...(ext && { ext: redacted(ext, pattern) as NonNullable<ToolResult['ext']> }),
  };
}

/** Bounded repetition of one class only, so that no result can make it backtrack for long. */
function patternOf(texts: readonly string[]): RegExp {
  const escaped = texts.map((text) =>
    text
      .split('*')
      .map((literal) => literal.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
      .join('\\S{0,200}'),
  );
  return new RegExp(escaped.join('|'), 'giu');
}

function holds(value: Json, pattern: RegExp): boolean {
  if (typeof value === 'string') return value.search(pattern) >= 0;
  if (Array.isArray(value)) return value.some((each) => holds(each, pattern));
  return (
    isObject(value) && Object.entries(value).some(([key, each]) => holds(key, pattern) || holds(each as Json, pattern))
  );
}

const REDACTED = '[redacted]';

function redacted(value: Json, pattern: RegExp): Json {
  if (typeof value === 'string') return value.replace(pattern, REDACTED);
  if (Array.isArray(value)) return value.map((each) => redacted(each, pattern));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [key.replace(pattern, REDACTED), redacted(each as Json, pattern)]),
  );
}
