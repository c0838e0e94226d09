/**
 * How a tool of the fixture server asks whoever called it, the same way in both eras of MCP: earlier by sending requests of
 * its own while the call waits, later by answering that input is required and being called again with it. What it
 * remembers between those calls travels with the client and is sealed, because a client may be anyone.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { ServerContext, StandardSchemaV1 } from '@modelcontextprotocol/server';

// biome-ignore lint/suspicious/noExplicitAny: a fixture looks freely into what it is sent
export type Loose = Record<string, any>;
export type Era = 'legacy' | 'modern';

/** One request on its way through the fixture. */
export interface Call {
  readonly era: Era;
  readonly params: Loose;
  readonly args: Loose;
  /** What this caller says it can be asked. */
  readonly abilities: Loose;
  readonly context: ServerContext;
  /** The server has tasks as 2025-11-25 has them. */
  readonly olderTasks: boolean;
  /** Tells everyone who listens that a list has changed. */
  changed(list: 'tools' | 'prompts'): void;
}

export interface Question {
  readonly method: string;
  readonly params: Loose;
}

export const key = (name: string) => `io.modelcontextprotocol/${name}`;
export const TASKS = key('tasks');

/** The SDK's server makes exactly this JSON-RPC error of it. */
export function rpcError(code: number, message: string, data?: Loose): Error {
  return Object.assign(new Error(message), { code, ...(data && { data }) });
}

export function lacking(requiredCapabilities: Loose): Error {
  return rpcError(-32021, 'the caller cannot do what this needs', { requiredCapabilities });
}

/** Takes whatever comes. */
export const anything: StandardSchemaV1<Loose, Loose> = {
  '~standard': { version: 1, vendor: 'tollbridge', validate: (value) => ({ value: value as Loose }) },
};

/** Not an error: the answer is a question. */
export class Unanswered extends Error {
  readonly result: Loose;
  constructor(result: Loose) {
    super('input is required');
    this.result = result;
  }
}

/** The answers by name. In the modern era this throws until there is one for each question. */
export async function ask(call: Call, questions: Readonly<Record<string, Question>>, memory?: unknown): Promise<Loose> {
  if (call.era === 'legacy') {
    const asked = Object.entries(questions).map(async ([name, question]) => [
      name,
      await call.context.mcpReq.send(question, anything),
    ]);
    return Object.fromEntries(await Promise.all(asked));
  }
  const answers = call.context.mcpReq.inputResponses ?? {};
  const open = Object.entries(questions).filter(([name]) => typeof answers[name] !== 'object' || !answers[name]);
  if (open.length === 0) return answers;
  for (const [, { method }] of open) {
    const ability = method.split('/')[0] as string;
    if (!call.abilities[ability]) throw lacking({ [ability]: {} });
  }
  throw new Unanswered({
    resultType: 'input_required',
    inputRequests: Object.fromEntries(open),
    ...(memory !== undefined && { requestState: seal(memory) }),
  });
}

/** What was remembered when the last question was asked; a seal that is not ours is refused. */
export function remembered(call: Call): unknown {
  const state = call.context.mcpReq.requestState<string>();
  return state === undefined ? undefined : unseal(state);
}

const SECRET = randomBytes(32);
const mark = (text: string) => createHmac('sha256', SECRET).update(text).digest();

function seal(memory: unknown): string {
  const text = JSON.stringify(memory);
  return `${Buffer.from(text).toString('base64url')}.${mark(text).toString('base64url')}`;
}

function unseal(state: string): unknown {
  const [body = '', seal = ''] = state.split('.');
  const text = Buffer.from(body, 'base64url').toString();
  const [mine, theirs] = [mark(text), Buffer.from(seal, 'base64url')];
  if (mine.length !== theirs.length || !timingSafeEqual(mine, theirs)) {
    throw rpcError(-32602, 'this request state is not one of ours');
  }
  return JSON.parse(text);
}

type Fields = Readonly<Record<string, Loose>>;

export const text = { type: 'string' } as const;
export const yesNo = { type: 'boolean' } as const;

export function schema(properties: Fields = {}, required?: readonly string[]): Loose {
  return { type: 'object', properties, ...(required && { required }) };
}

export function form(message: string, fields: Fields, required: readonly string[] = Object.keys(fields)): Question {
  return { method: 'elicitation/create', params: { message, requestedSchema: schema(fields, required) } };
}

export function sample(prompt: string, maxTokens = 100): Question {
  const messages = [{ role: 'user', content: { type: 'text', text: prompt } }];
  return { method: 'sampling/createMessage', params: { messages, maxTokens } };
}

export const roots: Question = { method: 'roots/list', params: {} };
