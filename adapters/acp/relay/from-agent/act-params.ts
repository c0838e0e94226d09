/**
 * Validates the parameters of calls that are acts. A member of another type, a name that some reader would take for another, or
 * text that cannot be recorded exactly is an error of the sender, and the message names it.
 */

import { isAbsolute } from 'node:path';
import { Fault, type Json, type JsonObject, own } from '../../../../src/index.ts';
import { objectOf, textOf } from '../../shapes.ts';
import { folded, type Request } from '../frames/frame.ts';

const NAMES = [
  'sessionId',
  'path',
  'content',
  'line',
  'limit',
  'command',
  'args',
  'env',
  'cwd',
  'outputByteLimit',
  'terminalId',
  'toolCall',
  'options',
  'subject',
  'title',
];
const EXACT = new Set(NAMES);
const FOLDED = new Map(NAMES.map((name) => [folded(name), name]));

export function requireSound({ message }: Request): void {
  for (const name in objectOf(message.params)) {
    const like = EXACT.has(name) ? undefined : FOLDED.get(folded(name));
    if (like) throw invalid(name, `could be read as ${like}`);
  }
  requireExact(message.params);
}

const HALF = /\p{Surrogate}/u;

function requireExact(value: Json | undefined): void {
  if (typeof value === 'string' && HALF.test(value)) throw invalid('params', 'holds half of a character');
  if (typeof value === 'number' && !Number.isFinite(value))
    throw invalid('params', 'holds a number beyond all numbers');
  if (typeof value !== 'object' || value === null) return;
  for (const [name, member] of Object.entries(value)) {
    requireExact(name);
    requireExact(member as Json);
  }
}

export function sessionIn({ message }: Request): string {
  const id = textOf(objectOf(message.params)?.sessionId);
  if (!id) throw invalid('sessionId', 'must be a text that is not empty');
  return id;
}

/** Absolute, as the protocol requires: the editor could resolve a relative path to another file than we do. */
export function pathIn(value: unknown, name = 'path'): string {
  const path = textOf(value);
  if (!path || !isAbsolute(path) || path.includes('\0')) throw invalid(name, 'must be an absolute path');
  return path;
}

export function wholeNumber(params: JsonObject, name: string): number | null {
  const value = own(params, name) ?? null;
  if (value !== null && !(typeof value === 'number' && Number.isSafeInteger(value) && value >= 0)) {
    throw invalid(name, 'must be a whole number');
  }
  return value as number | null;
}

export interface CommandParams {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string | undefined;
  readonly env: readonly { readonly name: string; readonly value: string }[];
}

export function commandIn(params: JsonObject): CommandParams {
  const command = textOf(params.command);
  if (!command || command.includes('\0')) throw invalid('command', 'must be a text that is not empty');
  const args = params.args ?? [];
  if (!Array.isArray(args) || !args.every((word) => typeof word === 'string' && !word.includes('\0'))) {
    throw invalid('args', 'must be a list of texts');
  }
  const variables = params.env ?? [];
  if (!Array.isArray(variables)) throw invalid('env', 'must be a list');
  const env = variables.map((each) => {
    const { name, value } = objectOf(each) ?? {};
    const sound = typeof name === 'string' && typeof value === 'string' && name !== '' && !/[=\0]/.test(name);
    if (!sound || value.includes('\0')) throw invalid('env', 'must be a list of names and values');
    return { name, value };
  });
  const cwd = params.cwd ?? undefined;
  wholeNumber(params, 'outputByteLimit');
  return { command, args: args as string[], cwd: cwd === undefined ? undefined : pathIn(cwd, 'cwd'), env };
}

export function invalid(name: string, how: string): Fault {
  return new Fault('invalid_request', `${name} ${how}`, { param: `/${name}` });
}
