/** The published schema of the protocol, as judge over frames: strict where it is closed, by the method a frame is about. */
import { createRequire } from 'node:module';
import { Ajv2020 } from 'ajv/dist/2020.js';

interface Definition {
  readonly 'x-method'?: string;
  readonly 'x-side'?: string;
  readonly oneOf?: readonly { readonly const?: string; readonly properties?: Record<string, { const?: string }> }[];
}

const schema = createRequire(import.meta.url)('@agentclientprotocol/sdk/schema/v1/schema.unstable.json') as {
  readonly $defs: Readonly<Record<string, Definition>>;
};
const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
ajv.addSchema(schema, 'acp');

/** `agent`: calls on an agent; `client`: calls on a client. */
export function methodsOf(side: 'agent' | 'client' | 'protocol'): string[] {
  const found = Object.values(schema.$defs).flatMap((each) =>
    each['x-side'] === side && each['x-method'] ? [each['x-method']] : [],
  );
  return [...new Set(found)].sort();
}

export function wordsOf(name: string): string[] {
  return (schema.$defs[name]?.oneOf ?? []).flatMap((each) => each.const ?? []).sort();
}

/** The values a tagged union tells its members apart by. */
export function kindsOf(name: string, tag: string): string[] {
  return (schema.$defs[name]?.oneOf ?? []).flatMap((each) => each.properties?.[tag]?.const ?? []).sort();
}

const compiled = new Map<string, ReturnType<typeof ajv.compile>>();

function troubleWith(definition: string, value: unknown): string[] {
  const check = compiled.get(definition) ?? ajv.compile({ $ref: `acp#/$defs/${definition}` });
  compiled.set(definition, check);
  if (check(value)) return [];
  return (check.errors ?? []).map(({ instancePath, message }) => `${definition}${instancePath} ${message}`);
}

function definitionOf(method: string, role: 'Request' | 'Response' | 'Notification', side: string): string | undefined {
  return Object.entries(schema.$defs).find(
    ([name, each]) =>
      each['x-method'] === method && name.endsWith(role) && ['protocol', side].includes(each['x-side']!),
  )?.[0];
}

// biome-ignore lint/suspicious/noExplicitAny: frames are looked into freely
type Frame = any;

/** What the schema has against what an agent said. `asked` are the client's requests by their ids. */
export function troubleOf(frame: Frame, asked: ReadonlyMap<unknown, string>): string[] {
  if (frame.jsonrpc !== '2.0') return ['no jsonrpc'];
  if (frame.method !== undefined) {
    if (frame.method.startsWith('_')) return [];
    const name = definitionOf(frame.method, frame.id === undefined ? 'Notification' : 'Request', 'client');
    return name ? troubleWith(name, frame.params) : [`there is no ${frame.method}`];
  }
  if (frame.error) return troubleWith('Error', frame.error);
  const method = asked.get(frame.id);
  const name = method && definitionOf(method, 'Response', 'agent');
  return name ? troubleWith(name, frame.result) : [`an answer to nobody: ${JSON.stringify(frame)}`];
}
