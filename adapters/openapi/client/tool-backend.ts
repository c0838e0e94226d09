/**
 * The tool backend for an HTTP API: reads its document once, and makes one request per call, with the gateway's own credentials. An
 * address that the configuration names may be anywhere; one that only the document names has to be public. No redirect is followed.
 */
import { readFile } from 'node:fs/promises';
import { parse as parseYaml } from 'yaml';
import {
  type Actor,
  type Deps,
  Fault,
  isObject,
  type Json,
  type JsonObject,
  own,
  type Skill,
  type ToolBackend,
  type ToolResult,
} from '../../../src/index.ts';
import { callerOf, callerToken } from '../../../src/transport/outbound/caller-credentials.ts';
import { type OutboundRules, requestOut } from '../../../src/transport/outbound/public-fetch.ts';
import { createTokenExchange, incomingToken } from '../../../src/transport/outbound/token-exchange.ts';
import { type OpenApiConfig, requireOneCredential } from '../config.ts';
import { type Operation, operationsOf, serverOf } from './operations.ts';
import { requestFor } from './request.ts';

const DOCUMENT_LIMIT = 16 * 1024 * 1024;
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
  deps: Pick<Deps, 'secret' | 'clock' | 'learn'>,
): ToolBackend {
  const { secret, clock } = deps;
  requireOneCredential(config);
  const exchange = config.exchange && createTokenExchange(config.exchange, config.server ?? config.document, deps);
  const timeoutMs = config.timeout_ms ?? MINUTE;
  let reading: Promise<Api> | undefined;
  /** The same once it is read. */
  let known: Api | undefined;

  function api(): Promise<Api> {
    reading ??= read().then(
      (found) => {
        known = found;
        return found;
      },
      (cause) => {
        reading = undefined;
        throw cause;
      },
    );
    return reading;
  }

  async function read(): Promise<Api> {
    const document = await documentAt(config.document, timeoutMs);
    const base = config.server ?? serverOf(document);
    if (!base) throw new Fault('invalid_request', `the document of ${name} names no server; say it with server`);
    const operations = operationsOf(document);
    return {
      base,
      rules: config.server ? named(config.server) : { allow: [], insecure: false },
      operations: new Map(operations.map((operation) => [operation.name, operation])),
      skills: operations.map((operation) => toSkill(name, operation, clock.now())),
    };
  }

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
    list: async () => (await api()).skills,
    effect: (tool) => own(config.effects ?? {}, tool) ?? known?.operations.get(tool)?.effect,
    attributes: () => ({
      trusted: config.trusted ?? false,
      tainted: false,
      ...(config.exchange && { account: 'exchange' }),
      ...(config.caller_tokens && { account: 'caller_tokens' }),
    }),
    async call({ actor, tool = '', arguments: args, trace }, signal): Promise<ToolResult> {
      const { base, rules, operations } = await api();
      const operation = operations.get(tool);
      if (!operation) throw new Fault('not_found', `${name} has no operation ${tool}`);
      const { url, method, headers, body } = requestFor(base, operation, args);
      const json = body === undefined ? {} : { 'content-type': 'application/json' };
      const answer = await requestOut(url, rules, {
        method,
        body,
        headers: { accept: 'application/json, text/*;q=0.5', ...headers, ...json, ...(await credentials(actor)) },
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
  };
}

/** The configuration may name an address of this network; a document may not. */
function named(address: string): OutboundRules {
  const { hostname, port, protocol } = new URL(address);
  const host = hostname.toLowerCase().replace(/^\[|\]$/g, '');
  return { allow: [`${host}:${port || (protocol === 'https:' ? '443' : '80')}`], insecure: true };
}

async function documentAt(location: string, timeoutMs: number): Promise<JsonObject> {
  const text = /^https?:/.test(location) ? await fetched(location, timeoutMs) : await readFile(location, 'utf8');
  // An alias is expanded where it stands, so a few lines could become gigabytes.
  const document: unknown = text.trimStart().startsWith('{')
    ? JSON.parse(text)
    : parseYaml(text, { maxAliasCount: 100 });
  const version = isObject(document) ? document.openapi : undefined;
  if (!isObject(document) || typeof version !== 'string' || !version.startsWith('3.'))
    throw new Fault('invalid_request', `${location} is not an OpenAPI document of version 3`);
  return document;
}

async function fetched(location: string, timeoutMs: number): Promise<string> {
  const headers = { accept: 'application/json, application/yaml, text/yaml, */*;q=0.1' };
  const wanted = { method: 'GET', headers, timeoutMs, limit: DOCUMENT_LIMIT };
  const { status, text } = await requestOut(location, named(location), wanted);
  if (status === 200) return text;
  throw new Fault('upstream_unavailable', `${new URL(location).host} answered ${status} instead of the document`);
}

function toSkill(server: string, { name, description, inputSchema, effect }: Operation, now: string): Skill {
  return {
    id: `openapi:${server}:${name}`,
    object: 'skill',
    created_at: now,
    updated_at: now,
    metadata: { annotations: { readOnlyHint: effect === 'read', destructiveHint: effect === 'delete' } },
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
