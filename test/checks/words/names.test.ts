/** The name of an exported type means one thing. The few that several files export have the same part in each: one for each protocol, or for each database. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { PROJECT } from '../../support/process/project.ts';

/** What the files that export it have in common. */
const SAME_PART: Readonly<Record<string, string>> = {
  BackendDeps: 'what a backend of each protocol is handed',
  BackendSettings: 'the checked settings of a backend of each protocol',
  Call: 'a request to a REST door, parsed',
  Connection: 'a connection to each database',
  Frame: 'a JSON-RPC message of each protocol',
  Instruction: 'what an event of each remote stands for',
  LogRows: 'the end of the log in each database',
  Operation: 'an operation of each HTTP API',
  OperationId: 'its name',
  RemoteEvent: 'an event of each remote',
  Reply: 'what a REST door answers',
  Request: 'a JSON-RPC request of each protocol',
  Response: 'a JSON-RPC response of each protocol',
  RouteContext: 'what the routes of a REST door are handed',
  Routes: 'the routes of a REST door',
  UpdateReader: 'reads the updates of an agent of each protocol',
  UpstreamConfig: 'the configuration of an outside server of each protocol',
  Value: 'what a column of each database holds',
};

/** The app of the console is a program of its own. */
const files = ['src', 'adapters', 'mappings'].flatMap((top) =>
  readdirSync(join(PROJECT, top), { recursive: true, encoding: 'utf8' })
    .map((name) => join(top, name))
    .filter((name) => name.endsWith('.ts') && !name.startsWith('src/console/app/')),
);

test('no two exported types have one name, unless they have the same part', () => {
  const by = new Map<string, string[]>();
  for (const file of files) {
    const text = readFileSync(join(PROJECT, file), 'utf8');
    for (const [, name = ''] of text.matchAll(/^export (?:interface|type|class|abstract class) (\w+)/gm))
      by.set(name, [...(by.get(name) ?? []), file]);
  }
  const repeated = [...by].filter(([, all]) => all.length > 1);
  expect(repeated.filter(([name]) => !(name in SAME_PART))).toEqual([]);
  expect(Object.keys(SAME_PART).filter((name) => !repeated.some(([other]) => other === name))).toEqual([]);
  expect(by.size).toBeGreaterThan(800);
});
