/**
 * `tollbridge.yaml`: read and checked once, at the edge, and handed on as a typed value. Works with no file at all.
 * A mistake is answered with its line and column and what is wrong there.
 */
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { type Static, type TProperties, Type } from 'typebox';
import { LineCounter, parseDocument } from 'yaml';
import { Fault } from './model/faults.ts';
import { ClosedWord, NonEmpty } from './model/schema.ts';
import { check } from './model/validate.ts';
import { AUTONOMY_TIERS } from './model/words.ts';
import { durationMs } from './policy/duration.ts';
import type { Sources } from './policy/load.ts';
import { RULES_SCHEMA } from './policy/rules-schema.ts';

const Closed = <P extends TProperties>(properties: P) => Type.Object(properties, { additionalProperties: false });

export const ConfigShape = Closed({
  /** Where everything is kept. Relative paths are relative to this file. */
  data: Type.Optional(NonEmpty),
  listen: Type.Optional(
    Closed({
      host: Type.Optional(NonEmpty),
      port: Type.Optional(Type.Integer({ minimum: 0, maximum: 65_535 })),
    }),
  ),
  /** The agent that does work which names none. */
  default_agent: Type.Optional(NonEmpty),
  /** How freely agents without a persona act. */
  autonomy: Type.Optional(ClosedWord(AUTONOMY_TIERS)),
  approvals: Type.Optional(Closed({ expire_after: Type.Optional(NonEmpty) })),
  retention: Type.Optional(Closed({ events: Type.Optional(NonEmpty) })),
  rules: Type.Optional(RULES_SCHEMA),
  /** Files of rules, `.cedar` or `.yaml`. */
  policies: Type.Optional(Type.Array(NonEmpty)),
});
export type ConfigFile = Static<typeof ConfigShape>;

export interface Config {
  /** The file it came from; undefined when there is none. */
  readonly file: string | undefined;
  readonly dataDir: string;
  readonly host: string;
  readonly port: number;
  readonly defaultAgent: string | undefined;
  readonly autonomy: ConfigFile['autonomy'];
  readonly askExpiresMs: number | undefined;
  /** Undefined keeps events for good. */
  readonly keepEventsMs: number | undefined;
  /** Reads the rules anew each time, so that a changed file is a changed policy. */
  readonly policy: { readonly load: () => Promise<Sources>; readonly watch: readonly string[] };
}

export interface Given {
  readonly file?: string;
  readonly data?: string;
  readonly host?: string;
  readonly port?: number;
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
}

/** With no rules of anyone's: reading is fine, and what leaves the house is for a person to say. */
export const FIRST_RULES = `
- id: reads-are-fine
  when: { effect: read }
  then: allow
  say: reading changes nothing
- id: outside-needs-a-human
  when: { effect: [send, publish, pay] }
  then: ask
  say: this leaves the house, so a person decides
`;

export async function readConfig(given: Given): Promise<Config> {
  const wanted = given.file ?? given.env.TOLLBRIDGE_CONFIG;
  const file = resolve(given.cwd, wanted ?? 'tollbridge.yaml');
  const text = await readFile(file, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOENT' && !wanted) return undefined;
    throw new Fault(
      'invalid_request',
      `cannot read ${file}: ${cause.code === 'ENOENT' ? 'there is no such file' : cause.code}`,
    );
  });
  const config = text === undefined ? {} : parseConfig(text, file);
  const base = text === undefined ? given.cwd : dirname(file);
  const at = (path: string) =>
    path.startsWith('~/') ? join(homedir(), path.slice(2)) : isAbsolute(path) ? path : resolve(base, path);
  const policies = (config.policies ?? []).map(at);
  return {
    file: text === undefined ? undefined : file,
    dataDir: given.data
      ? resolve(given.cwd, given.data)
      : at(given.env.TOLLBRIDGE_DATA ?? config.data ?? '~/.tollbridge'),
    host: given.host ?? config.listen?.host ?? '127.0.0.1',
    port: given.port ?? config.listen?.port ?? 4319,
    defaultAgent: config.default_agent,
    autonomy: config.autonomy,
    askExpiresMs: duration(config.approvals?.expire_after, 'approvals.expire_after'),
    keepEventsMs: duration(config.retention?.events, 'retention.events'),
    policy: {
      load: () => readSources(text === undefined ? undefined : file, policies),
      watch: [...(text === undefined ? [] : [file]), ...policies],
    },
  };
}

async function readSources(file: string | undefined, policies: readonly string[]): Promise<Sources> {
  const config = file ? parseConfig(await readFile(file, 'utf8'), file) : {};
  const files = await Promise.all(policies.map(async (name) => ({ name, text: await readFile(name, 'utf8') })));
  const rules = config.rules ?? (files.length > 0 ? undefined : FIRST_RULES);
  return { ...(rules && { rules, rulesName: file ?? 'built-in rules' }), files };
}

export function parseConfig(text: string, name: string): ConfigFile {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const [syntax] = document.errors;
  if (syntax) throw wrong(name, lines.linePos(syntax.pos[0]), syntax.message);
  const value = (document.toJS() ?? {}) as unknown;
  try {
    return check(ConfigShape, value, 'configuration');
  } catch (cause) {
    if (!(cause instanceof Fault)) throw cause;
    const path = (cause.param ?? '').split('/').filter(Boolean);
    // The member named may be the one that is missing; its parent is where it should stand.
    for (let depth = path.length; depth >= 0; depth -= 1) {
      const node = document.getIn(path.slice(0, depth), true) as { range?: [number, number, number] } | undefined;
      if (node?.range) throw wrong(name, lines.linePos(node.range[0]), cause.message);
    }
    throw wrong(name, { line: 1, col: 1 }, cause.message);
  }
}

function wrong(name: string, { line, col }: { line: number; col: number }, message: string): Fault {
  return new Fault('invalid_request', `${name}:${line}:${col}: ${message}`);
}

function duration(text: string | undefined, member: string): number | undefined {
  if (text === undefined) return undefined;
  const ms = durationMs(text);
  if (ms === undefined)
    throw new Fault('invalid_request', `${member}: ${text} is not a duration; write 30s, 10m, 12h or 30d`);
  return ms;
}
