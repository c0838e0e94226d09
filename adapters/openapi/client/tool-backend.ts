/**
 * The tool backend for an HTTP API: one tool for each operation of its document, and one request per call, with the gateway's own
 * credentials or the caller's. An address that the configuration names may be anywhere; one that only the document names has to be public. No
 * redirect is followed.
 */
import {
  type Actor,
  type Deps,
  Fault,
  type Json,
  own,
  type Skill,
  type ToolBackend,
  type ToolResult,
} from '../../../src/index.ts';
import { callerOf, callerToken } from '../../../src/transport/outbound/caller-credentials.ts';
import { type OutboundRules, requestOut } from '../../../src/transport/outbound/public-fetch.ts';
import { createTokenExchange, incomingToken } from '../../../src/transport/outbound/token-exchange.ts';
import { type OpenApiConfig, requireOneCredential } from '../config.ts';
import { createDocumentSource } from './document.ts';
import { type Operation, operationsOf, serverOf } from './operations.ts';
import { named, PUBLIC_ONLY } from './outbound.ts';
import { requestFor } from './request.ts';

const ANSWER_LIMIT = 4 * 1024 * 1024;
const MINUTE = 60_000;

interface Api {
  readonly base: string;
  readonly rules: OutboundRules;
  readonly operations: ReadonlyMap<string, Operation>;
  readonly skills: readonly Skill[];
}

export function createOpenApiTools(
  name: string,
  config: OpenApiConfig,
  deps: Pick<Deps, 'secret' | 'clock' | 'log' | 'learn'>,
): ToolBackend {
  const { secret, clock, log } = deps;
  requireOneCredential(config);
  const exchange = config.exchange && createTokenExchange(config.exchange, config.server ?? '', deps);
  const timeoutMs = config.timeout_ms ?? MINUTE;
  /** As last read. */
  let known: Api | undefined;
  const api = createDocumentSource<Api>({
    location: config.document,
    timeoutMs,
    refreshMs: config.refresh_ms ?? 5 * MINUTE,
    clock,
    log,
    made(document) {
      const base = config.server ?? serverOf(document);
      if (!base) throw new Fault('invalid_request', `the document of ${name} names no server; say it with server`);
      const operations = operationsOf(document);
      known = {
        base,
        rules: config.server ? named(config.server) : PUBLIC_ONLY,
        operations: new Map(operations.map((operation) => [operation.name, operation])),
        skills: operations.map((operation) => toSkill(name, operation, config.server ? undefined : base, clock.now())),
      };
      return known;
    },
  });

  /** The caller's own bearer token where callers have such, otherwise the common one. */
  async function bearerFor(actor: Actor): Promise<string | undefined> {
    const { token, caller_tokens } = config;
    if (exchange) return await exchange.token(incomingToken(name, actor));
    if (caller_tokens) return await callerToken(name, caller_tokens, callerOf(actor), secret);
    return token && (await secret(token));
  }

  async function credentials(actor: Actor): Promise<Record<string, string>> {
    const token = await bearerFor(actor);
    const secrets = Object.entries(config.header_secrets ?? {}).map(async ([header, key]) => [
      header,
      await secret(key),
    ]);
    const bearer = token === undefined ? {} : { authorization: `Bearer ${token}` };
    return { ...config.headers, ...Object.fromEntries(await Promise.all(secrets)), ...bearer };
  }

  return {
    name,
    pinned: true,
    list: async () => (await api.current()).skills,
    effect: (tool) => own(config.effects ?? {}, tool) ?? known?.operations.get(tool)?.effect,
    attributes: () => ({
      trusted: config.trusted ?? false,
      tainted: false,
      ...(config.exchange && { account: 'exchange' }),
      ...(config.caller_tokens && { account: 'caller_tokens' }),
    }),
    async call({ actor, tool = '', arguments: args, trace }, signal): Promise<ToolResult> {
      const { base, rules, operations } = known ?? (await api.current());
      const operation = operations.get(tool);
      if (!operation) throw new Fault('not_found', `${name} has no operation ${tool}`);
      const { url, method, headers, body } = requestFor(base, operation, args);
      const typed = body && { 'content-type': body.type };
      const answer = await requestOut(url, rules, {
        method,
        body: body?.text,
        headers: { accept: 'application/json, text/*;q=0.5', ...headers, ...typed, ...(await credentials(actor)) },
        timeoutMs,
        signal,
        limit: ANSWER_LIMIT,
        ...(trace && { trace }),
      });
      return {
        ...toResult(answer.status, answer.headers['content-type'] ?? '', answer.text),
        effects: [{ type: 'network', destination: new URL(base).host, purpose: `${method} ${operation.path}` }],
        ...(!config.trusted && { taint: { server: name, what: tool } }),
      };
    },
    watch: (listener) => api.watch(() => listener('tools')),
    close: async () => api.close(),
  };
}

/** With the request that it makes: a definition whose path or method has changed is another one, and its pin says so. */
function toSkill(server: string, operation: Operation, base: string | undefined, now: string): Skill {
  const { name, description, inputSchema, effect, method, path, body } = operation;
  const hints = { readOnlyHint: effect === 'read', destructiveHint: effect === 'delete' };
  const request = { method, path, ...(base && { server: base }), ...(body && { body: body.type }) };
  return {
    id: `openapi:${server}:${name}`,
    object: 'skill',
    created_at: now,
    updated_at: now,
    metadata: { annotations: { ...hints, request } },
    name,
    description,
    input_schema: inputSchema,
    output_schema: null,
    source: server,
  };
}

function toResult(status: number, type: string, text: string): ToolResult {
  const body = bodyOf(type, text);
  if (status >= 200 && status < 300) return { status: 'ok', output: body };
  return { status: 'error', output: body, error: `the API answered ${status}`, code: 'upstream_error' };
}

function bodyOf(type: string, text: string): Json {
  if (!/json/.test(type) || text === '') return text;
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}
