/**
 * The operations of an OpenAPI document as tools: name, description, schema of the arguments, and where each argument goes. Pure.
 * References inside the document are resolved; one that leads outside, or back to itself, stands for any value.
 */
import { asText, type Effect, isObject, type Json, type JsonObject, own } from '../../../src/index.ts';
import { type Body, bodyAmong } from './body.ts';

export interface Parameter {
  /** The name of the argument. */
  readonly argument: string;
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
}
export interface Operation {
  readonly name: string;
  readonly description: string;
  readonly method: string;
  readonly path: string;
  readonly effect: Effect;
  readonly parameters: readonly Parameter[];
  readonly body: Pick<Body, 'kind' | 'type'> | undefined;
  readonly inputSchema: JsonObject;
}

const METHODS: ReadonlyMap<string, Effect> = new Map<string, Effect>([
  ['get', 'read'],
  ['head', 'read'],
  ['put', 'write'],
  ['post', 'write'],
  ['patch', 'write'],
  ['delete', 'delete'],
]);
const MOST_OPERATIONS = 1_000;
const DEEPEST = 12;
/** Members of an operation that callers never set: they are the gateway's credentials, or belong to the connection. */
const OUR_HEADERS = new Set([
  'authorization',
  'cookie',
  'host',
  'content-length',
  'content-type',
  'accept',
  'proxy-authorization',
]);

export function operationsOf(document: JsonObject): readonly Operation[] {
  const found = Object.entries(objectAt(document, 'paths')).flatMap(([path, item]) => {
    const common = resolved(document, item as Json);
    if (!isObject(common)) return [];
    return [...METHODS].flatMap(([method, effect]) => {
      const operation = common[method];
      return isObject(operation) ? [operationOf(document, { path, method, effect }, common, operation)] : [];
    });
  });
  const counts = new Map<string, number>();
  for (const { name } of found) counts.set(name, (counts.get(name) ?? 0) + 1);
  // Two operations of one name cannot be told apart.
  return found.filter(({ name }) => counts.get(name) === 1).slice(0, MOST_OPERATIONS);
}

/** The first server that is a whole address without variables. */
export function serverOf(document: JsonObject): string | undefined {
  const [first] = Array.isArray(document.servers) ? document.servers : [];
  const url = isObject(first) ? asText(first.url) : '';
  return URL.canParse(url) && !url.includes('{') ? url : undefined;
}

function operationOf(
  document: JsonObject,
  { path, method, effect }: { readonly path: string; readonly method: string; readonly effect: Effect },
  item: JsonObject,
  operation: JsonObject,
): Operation {
  const mine = listAt(operation, 'parameters').map((each) => resolved(document, each));
  const shared = listAt(item, 'parameters').map((each) => resolved(document, each));
  const all = [...mine, ...shared.filter((each) => !mine.some((other) => isSame(each, other)))].filter(isObject);
  const properties: Record<string, Json> = {};
  const required: string[] = [];
  const parameters: Parameter[] = [];
  const body = bodyOf(document, operation);
  for (const parameter of all) {
    const [name, location] = [asText(parameter.name), asText(parameter.in)];
    if (location !== 'path' && location !== 'query' && location !== 'header') continue;
    if (location === 'header' && OUR_HEADERS.has(name.toLowerCase())) continue;
    const taken = Object.hasOwn(properties, name) || (name === 'body' && body !== undefined);
    const argument = taken ? `${location}_${name}` : name;
    const about = typeof parameter.description === 'string' ? { description: parameter.description } : {};
    properties[argument] = { ...about, ...schemaOf(document, parameter.schema ?? {}) };
    if (parameter.required === true || location === 'path') required.push(argument);
    parameters.push({ argument, name, in: location });
  }
  if (body) {
    properties.body = body.schema;
    if (body.required) required.push('body');
  }
  const said = [operation.summary, operation.description].filter((each) => typeof each === 'string' && each !== '');
  const name = asText(operation.operationId ?? `${method}${path}`)
    .replace(/[^A-Za-z0-9_.-]+/g, '_')
    .replace(/^_+|_+$/g, '')
    .slice(0, 128);
  return {
    name,
    description: said.join('\n\n') || `${method.toUpperCase()} ${path}`,
    method: method.toUpperCase(),
    path,
    effect,
    parameters,
    body: body && { kind: body.kind, type: body.type },
    inputSchema: { type: 'object', properties, ...(required.length > 0 && { required }), additionalProperties: false },
  };
}

function isSame(a: Json, b: Json): boolean {
  return isObject(a) && isObject(b) && a.name === b.name && a.in === b.in;
}

function bodyOf(document: JsonObject, operation: JsonObject): (Body & { readonly required: boolean }) | undefined {
  const body = resolved(document, operation.requestBody ?? null);
  if (!isObject(body)) return undefined;
  const schemas = Object.entries(objectAt(body, 'content')).map(
    ([type, content]) => [type, schemaOf(document, (isObject(content) && content.schema) || {})] as const,
  );
  const found = bodyAmong(Object.fromEntries(schemas));
  return found && { ...found, required: body.required === true };
}

function schemaOf(document: JsonObject, schema: Json): JsonObject {
  const whole = expanded(document, schema, [], 0);
  return isObject(whole) ? whole : {};
}

function expanded(document: JsonObject, value: Json, within: readonly string[], depth: number): Json {
  if (Array.isArray(value)) return value.map((each) => expanded(document, each, within, depth + 1));
  if (!isObject(value)) return value;
  if (depth > DEEPEST) return {};
  if (typeof value.$ref === 'string') {
    const { $ref } = value;
    if (within.includes($ref)) return {};
    return expanded(document, lookedUp(document, $ref) ?? {}, [...within, $ref], depth + 1);
  }
  const { nullable, example: _, discriminator: _d, xml: _x, ...rest } = value;
  const inside = Object.fromEntries(
    Object.entries(rest).map(([name, each]) => [name, expanded(document, each as Json, within, depth + 1)]),
  );
  // As 3.0 writes it.
  return nullable === true && typeof inside.type === 'string' ? { ...inside, type: [inside.type, 'null'] } : inside;
}

function resolved(document: JsonObject, value: Json): Json {
  return isObject(value) && typeof value.$ref === 'string' ? (lookedUp(document, value.$ref) ?? {}) : value;
}

function lookedUp(document: JsonObject, reference: string): Json | undefined {
  if (!reference.startsWith('#/')) return undefined;
  let at: Json | undefined = document;
  for (const word of reference.slice(2).split('/')) {
    const name = decodeURIComponent(word).replaceAll('~1', '/').replaceAll('~0', '~');
    at = isObject(at) && Object.hasOwn(at, name) ? (at[name] as Json) : undefined;
  }
  return at;
}

function objectAt(value: JsonObject, member: string): JsonObject {
  const found = own(value, member);
  return isObject(found) ? found : {};
}

function listAt(value: JsonObject, member: string): readonly Json[] {
  const found = own(value, member);
  return Array.isArray(found) ? found : [];
}
