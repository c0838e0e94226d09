/** Names from outside are data, everywhere: no look-up by such a name finds what every object inherits. */
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { own } from '../../src/model/values/own.ts';
import { type Exception, foreignLookups, lookupsInText } from './foreign-names.ts';

const OURS = 'the name is from a list or a table of our own';
const OWN_NAMES = 'goes through the names the object itself has';
const CHECKED = 'the name was checked against the known ones before';
const COUNTED = 'filled under names of our own, and read by them';
const NUMBER = 'an index into a list';
const SETTING = 'the name is what the person wrote into the configuration, and only a text counts';

const may = (why: string, file: string, ...looks: readonly string[]): readonly Exception[] =>
  looks.map((what) => ({ file, what, why }));

const EXCEPTIONS: readonly Exception[] = [
  ...may(SETTING, 'src/auth/vault-file.ts', 'env[key.passphraseEnv]'),
  ...may(OURS, 'src/runtime/logger.ts', 'LEVELS[level]'),
  ...may(CHECKED, 'src/runtime/config/document.ts', 'members[step]'),
  ...may(CHECKED, 'src/runtime/config/store.ts', 'UNITS[unit as keyof typeof UNITS]'),
  ...may(COUNTED, 'src/core/actions/charging.ts', 'sums[name]'),
  ...may(OURS, 'src/core/commands/deliveries.ts', 'payload[name]'),
  ...may(OURS, 'src/core/replay/marks.ts', 'payload[object]'),
  ...may(OWN_NAMES, 'src/core/actions/gate.ts', 'action[name as keyof Action]', 'action[member]'),
  ...may(OWN_NAMES, 'src/core/events/log.ts', 'slim[name]'),
  ...may(SETTING, 'src/runtime/serving/parts.ts', 'headers[name]'),
  ...may(OWN_NAMES, 'src/model/type.ts', 'properties[name]'),
  ...may(CHECKED, 'src/model/words.ts', 'TASK_TRANSITIONS[from as TaskState]'),
  ...may(NUMBER, 'src/core/tools/visibility.ts', 'verdicts[at]'),
  ...may(OWN_NAMES, 'src/policy/acts/walk.ts', 'record[name]'),
  ...may(NUMBER, 'src/policy/acts/walk.ts', 'roles[at]'),
  ...may(CHECKED, 'src/policy/context.ts', 'RECORD_FIELDS[name]'),
  ...may('made without a prototype', 'src/policy/merge-patch.ts', 'result[key]'),
  ...may('asked for with Object.hasOwn in `known`; only numbers are assigned', 'src/policy/quota.ts', 'usage[key]'),
  ...may(COUNTED, 'src/policy/quota.ts', 'budget[name]'),
  ...may(NUMBER, 'src/policy/rules/yaml.ts', 'node.items[step as number]'),
  ...may(CHECKED, 'src/policy/rules/rules.ts', 'PRINCIPAL_TYPES[kind as keyof typeof PRINCIPAL_TYPES]'),
  ...may(COUNTED, 'src/receipt/build/build.ts', 'words[word]'),
  ...may(NUMBER, 'src/receipt/seal/canonical-json.ts', 'copy[i]'),
  ...may(OWN_NAMES, 'src/receipt/seal/canonical-json.ts', 'object[key]', 'copy[key]', 'record[key]'),
  ...may(OURS, 'src/store/sqlite/tables.ts', 'members[name]'),
  ...may(OURS, 'src/transport/outbound/kept-connections.ts', 'headers[name]'),
  ...may(NUMBER, 'src/transport/http/response.ts', 'headers[at]', 'headers[at + 1]'),
  ...may(OURS, 'adapters/runs/gateway-extension.ts', 'payload[name]'),
  ...may(NUMBER, 'adapters/runs/server/sensitive.ts', 'paths[at]'),
  ...may(
    CHECKED,
    'adapters/runs/server/stall-detector.ts',
    "settings.classMs[runMetadataOf(task)?.run_class ?? 'default']",
  ),
  ...may(OURS, 'adapters/a2a/server/card.ts', 'ABOUT[key as keyof typeof EXTENSIONS]'),
  ...may(OURS, 'adapters/a2a/server/exchange.ts', 'request.headers[name]'),
  ...may(OURS, 'adapters/a2a/bindings/error-mapping.ts', 'target[name as keyof A2ARequestHandler]'),
  ...may('a symbol', 'adapters/a2a/bindings/json-rpc.ts', 'Symbol.asyncIterator in value'),
  ...may(OURS, 'adapters/a2a/server/refusal.ts', 'statuses[grpc]'),
  ...may(SETTING, 'adapters/acp/client/environment.ts', 'process.env[name]'),
  ...may(OURS, 'adapters/acp/harn.ts', 'update[field]', 'found[field]', 'field in value', 'value[field]'),
  ...may(OURS, 'adapters/acp/relay/from-agent/approved-acts.ts', 'input[name]'),
  ...may(OURS, 'adapters/ahp/decode.ts', 'read[name]'),
  ...may('`__proto__` is left out before', 'adapters/ahp/server/tolerant.ts', 'mended[name]'),
  ...may(
    OURS,
    'adapters/ahp/translate.ts',
    'object[key]',
    'object[name]',
    'args[key]',
    'payload[name]',
    'payload[key]',
  ),
  ...may(OURS, 'adapters/ahp/client/translate.ts', 'payload[key]'),
  ...may(OURS, 'adapters/harn/server/exchange.ts', 'SCHEMAS[operation.body as keyof typeof SCHEMAS]'),
  ...may(OURS, 'adapters/harn/server/openapi.ts', 'paths[operation.path]', 'CONTENT[name]'),
  ...may(OURS, 'adapters/harn/server/router.ts', 'params[wanted.slice(1, -1)]'),
  ...may(OURS, 'adapters/mcp/server/aggregate/listen.ts', 'wishes[wish]'),
  ...may(OURS, 'adapters/mcp/server/other-requests.ts', 'params[member]'),
  ...may(OURS, 'adapters/mcp/compat/modern-as-legacy.ts', "declared[wire.split('/')[1] as string]"),
  ...may(OURS, 'adapters/mcp/server/list-changes.ts', 'wishes[wish]'),
  ...may(
    OURS,
    'adapters/mcp/server/transports/http.ts',
    'request.headers[name]',
    'frame.params?.[member]',
    'headers[name]',
    'found[name]',
  ),
  ...may(
    "the engine's own error codes",
    'adapters/mcp/client/transport/http.ts',
    "TROUBLES[name === 'HTTPParserError' ? name : code]",
  ),
  ...may(OURS, 'adapters/mcp/client/transport/create-transport.ts', 'env[name]'),
  ...may(OURS, 'adapters/runs/server/openapi.ts', 'paths[operation.path]', 'BODIES[id]', 'QUERY[name]', 'RESULTS[id]'),
  ...may(OURS, 'adapters/runs/translate.ts', 'input[name]'),
];

test('no object is searched by a name from outside', () => {
  const root = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
  const found = foreignLookups(root, EXCEPTIONS).map(({ file, line, what, why }) => `${file}:${line}  ${what}  ${why}`);
  expect(found).toEqual([]);
});

describe('what the check sees', () => {
  test.each([
    [
      'a table typed by any name',
      'const T: Record<string, number> = { a: 1 }; export const f = (name: string) => T[name];',
    ],
    [
      'a parameter',
      'export function f(effects: Readonly<Record<string, string>>, tool: string) { return effects[tool]; }',
    ],
    [
      'a member of an interface',
      'interface S { readonly effects: Record<string, string> } export const f = (s: S, tool: string) => s.effects[tool];',
    ],
    [
      'a member taken out of it',
      'interface S { readonly effects: Record<string, string> } export function f({ effects }: S, tool: string) { return effects[tool]; }',
    ],
    ['a cast name', 'const T = { a: 1 } as const; export const f = (name: string) => T[name as keyof typeof T];'],
    ['in', 'const T = { a: 1 }; export const f = (name: string) => name in T;'],
  ])('%s', (_, source) => {
    expect(lookupsInText(source)).toHaveLength(1);
  });

  test.each([
    [
      'one that asks first',
      'const T: Record<string, number> = {}; export const f = (name: string) => (Object.hasOwn(T, name) ? T[name] : undefined);',
    ],
    ['a name written there', "const T: Record<string, number> = {}; export const f = () => T['a'];"],
    ['a list', 'export const f = (list: readonly string[], at: number) => list[at];'],
  ])('and does not mind: %s', (_, source) => {
    expect(lookupsInText(source)).toEqual([]);
  });
});

test.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])('own finds no inherited %s', (name) => {
  expect(own({ a: 1 }, name)).toBeUndefined();
  expect(own(JSON.parse(`{"${name}": 7}`) as Record<string, number>, name)).toBe(7);
});
