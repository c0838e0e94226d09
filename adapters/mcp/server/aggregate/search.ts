/**
 * The common address for clients that drown in tools: three tools that search, describe and call all others. It sees what the common
 * address shows to the same caller, and a call through it is a call there: decided, recorded and pinned under the tool's own name.
 */
import { asText, isObject, type Json, type JsonObject } from '../../../../src/index.ts';
import type { FrameOutcome, Request } from '../../frames.ts';
import { refused } from '../../translate.ts';
import type { Caller } from '../caller.ts';
import type { EndpointHandler } from '../endpoint.ts';
import { kept } from './lists.ts';

const READS = { readOnlyHint: true, openWorldHint: false };
const Name = { type: 'string', description: 'The name of a tool, as search_tools returned it' };

const TOOLS: readonly JsonObject[] = [
  {
    name: 'search_tools',
    description: 'Finds tools by words in their names and descriptions. Without words it lists the first ones.',
    inputSchema: {
      type: 'object',
      properties: {
        query: { type: 'string', description: 'A few words for what is to be done' },
        limit: { type: 'integer', minimum: 1, maximum: 50, description: 'At most so many; 10 when absent' },
      },
    },
    annotations: READS,
  },
  {
    name: 'describe_tools',
    description: 'Returns the definitions of tools, with the schema of their arguments. Read them before calling one.',
    inputSchema: {
      type: 'object',
      properties: { names: { type: 'array', items: Name, minItems: 1, maxItems: 20 } },
      required: ['names'],
    },
    annotations: READS,
  },
  {
    name: 'call_tool',
    description: 'Calls a tool with arguments that fit its schema.',
    inputSchema: {
      type: 'object',
      properties: { name: Name, arguments: { type: 'object', description: 'As the definition of the tool says' } },
      required: ['name'],
    },
  },
];

export function createSearchEndpoint(common: EndpointHandler): EndpointHandler {
  async function allTools(caller: Caller): Promise<readonly JsonObject[]> {
    const outcome = await common.receive({ jsonrpc: '2.0', id: 0, method: 'tools/list', params: {} }, caller);
    const tools = 'error' in outcome ? [] : outcome.result.tools;
    return Array.isArray(tools) ? tools.filter(isObject) : [];
  }

  async function search({ query = '', limit = 10 }: JsonObject, caller: Caller): Promise<JsonObject> {
    const words = asText(query)
      .toLowerCase()
      .split(/[^\p{L}\p{N}]+/u)
      .filter(Boolean);
    const scored = (await allTools(caller))
      .map((tool) => ({ tool, score: scoreOf(tool, words) }))
      .filter(({ score }) => words.length === 0 || score > 0)
      .toSorted((a, b) => b.score - a.score);
    const most = typeof limit === 'number' ? Math.min(Math.max(Math.floor(limit), 1), 50) : 10;
    const tools = scored
      .slice(0, most)
      .map(({ tool: { name, description = '' } }) => ({ name: name as Json, description }));
    return { tools, found: scored.length };
  }

  async function describe({ names }: JsonObject, caller: Caller): Promise<JsonObject> {
    const wanted = Array.isArray(names) ? names.slice(0, 20).map(asText) : [];
    const all = await allTools(caller);
    const tools = all.filter(({ name }) => wanted.includes(asText(name)));
    const unknown = wanted.filter((name) => !tools.some((tool) => tool.name === name));
    return { tools, ...(unknown.length > 0 && { unknown }) };
  }

  async function call(request: Request, caller: Caller): Promise<FrameOutcome> {
    const { params = {} } = request;
    const args = isObject(params.arguments) ? params.arguments : {};
    switch (params.name) {
      case 'search_tools':
        return answer(await search(args, caller), caller);
      case 'describe_tools':
        return answer(await describe(args, caller), caller);
      case 'call_tool': {
        if (typeof args.name !== 'string' || META_TOOLS.has(args.name))
          return refused('say which tool to call: name', false);
        const there = { ...params, name: args.name, arguments: args.arguments ?? {} };
        // Copies of arguments in headers are of the outer call; the inner one comes without any.
        return await common.receive({ ...request, params: there }, { ...caller, headers: undefined });
      }
      default:
        return await common.receive(request, caller);
    }
  }

  return {
    ...common,
    async receive(request, caller) {
      if (request.method === 'tools/call') return await call(request, caller);
      if (request.method !== 'tools/list') return await common.receive(request, caller);
      return kept({ tools: [...TOOLS] }, caller);
    },
  };
}
const META_TOOLS: ReadonlySet<string> = new Set(TOOLS.map(({ name }) => name as string));

function answer(found: JsonObject, caller: Caller): FrameOutcome {
  const content = [{ type: 'text', text: JSON.stringify(found) }];
  const result = { content, structuredContent: found };
  return { result: caller.era === 'modern' ? { resultType: 'complete', ...result } : result };
}

/** A word in the name counts more than one in the description. */
function scoreOf({ name, title, description }: JsonObject, words: readonly string[]): number {
  const heading = `${asText(name)} ${asText(title ?? '')}`.toLowerCase();
  const body = asText(description ?? '').toLowerCase();
  return words.reduce((sum, word) => sum + (heading.includes(word) ? 3 : 0) + (body.includes(word) ? 1 : 0), 0);
}
