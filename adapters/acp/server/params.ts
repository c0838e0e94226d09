/**
 * Holds the params of an editor's request against the schema that the protocol's SDK publishes. Params are validated and never
 * rebuilt, so members that nobody knows stay. Absent members are the door's business: editors leave out some that it does not need.
 */
import { createRequire } from 'node:module';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { Fault, type JsonObject } from '../../../src/index.ts';

interface Definition extends JsonObject {
  readonly 'x-method'?: string;
  readonly 'x-side'?: string;
}

/** A cache: one for each method of the protocol, which are known. */
const validators = new Map<string, ValidateFunction | undefined>();
let published: { readonly ajv: Ajv2020; readonly names: ReadonlyMap<string, string> } | undefined;

/** Read with the first request: the SDK's own code takes 30 times as long to load as its schema, and not every process has a door. */
function read() {
  const { $defs } = createRequire(import.meta.url)('@agentclientprotocol/sdk/schema/v1/schema.json') as {
    readonly $defs: Readonly<Record<string, Definition>>;
  };
  const requests = Object.entries($defs).filter(
    ([name, each]) => each['x-side'] === 'agent' && name.endsWith('Request') && each['x-method'],
  );
  const lenient = Object.fromEntries(requests.map(([name, each]) => [name, { ...each, required: [] }]));
  // Formats are hints here: the schema's own are not all known to the validator.
  const ajv = new Ajv2020({ strict: false, validateFormats: false, meta: false, validateSchema: false });
  ajv.addSchema({ $id: 'acp', $defs: { ...$defs, ...lenient, ...OPEN } });
  return { ajv, names: new Map(requests.map(([name, each]) => [each['x-method'] as string, name])) };
}

/** Unions that newer editors may have more members of: a block or a server of an unknown kind is kept as it came. */
const OPEN = { ContentBlock: {}, McpServer: {} };

function validatorOf(method: string): ValidateFunction | undefined {
  if (validators.has(method)) return validators.get(method);
  published ??= read();
  const name = published.names.get(method);
  const made = name === undefined ? undefined : published.ajv.compile({ $ref: `acp#/$defs/${name}` });
  validators.set(method, made);
  return made;
}

/** Throws for a member of the wrong type. Only for methods that the door serves: others would be compiled for nothing. */
export function requireSoundParams(method: string, params: JsonObject): void {
  const validate = validatorOf(method);
  if (!validate || validate(params)) return;
  const { instancePath = '', message = 'is not what the protocol has here' } = validate.errors?.[0] ?? {};
  throw new Fault('invalid_request', `${instancePath || 'params'} ${message}`, { param: instancePath });
}
