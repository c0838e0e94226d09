/** Requests on HTTP are judged by a table as frames are: a row for each operation, and nothing is served without one. */
import { describe, expect, test } from 'vitest';
import { REVISIONS } from '../../adapters/harn/revisions/revisions.ts';
import { match as matchRuns } from '../../adapters/runs/server/exchange.ts';
import { type RouteRow, routeTable } from '../../mappings/frames.ts';
import { routes as runs } from '../../mappings/runs.ts';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT', 'PROPFIND', 'get', ''];
const filled = (path: string) => path.replace(/\{[^}]*\}/g, 'some-id');

const TABLES = [
  ...REVISIONS.map(({ version, operations, match }) => ({
    name: version,
    table: { rows: operations as readonly RouteRow[] },
    match: match as (method: string, path: string) => { readonly operation: RouteRow } | undefined,
  })),
  { name: 'runs', table: runs as { rows: readonly RouteRow[] }, match: matchRuns },
];

describe.each(TABLES)('the routes of $name', ({ name, table, match }) => {
  test('every row is served as itself, and a method without a row is not served', () => {
    for (const path of new Set(table.rows.map(({ path }) => path))) {
      for (const method of METHODS) {
        const read = name !== 'runs' && method === 'HEAD' ? 'GET' : method;
        const row = table.rows.find((each) => each.path === path && each.method === read);
        expect(match(method, filled(path))?.operation.id, `${method} ${path}`).toBe(row?.id);
      }
    }
  });

  test('a path that differs in anything is another path', () => {
    for (const { method, path } of table.rows) {
      const at = filled(path);
      for (const other of [
        `${at}/x`,
        `/x${at}`,
        at.replace('/v1', '/V1'),
        `${at};x`,
        `${at}%2f`,
        at.slice(1),
        `/${at}`,
      ]) {
        if (other === at) continue;
        const found = match(method, other);
        // Where a name of the caller's own choice may stand, another name is another name.
        if (found)
          expect(filled(found.operation.path).split('/').length, `${method} ${other}`).toBe(other.split('/').length);
        else expect(found).toBeUndefined();
      }
    }
    for (const id of ['__proto__', 'constructor', '%2e%2e', '', ' ', 'a b', 'ü'])
      expect(match('POST', `/v1/${id}`), id).toBeUndefined();
  });

  test('what begins work says that it is an act', () => {
    const acts = table.rows.filter(({ handling }) => handling === 'act').map(({ id }) => id);
    expect(acts).toEqual(
      name !== 'runs'
        ? [
            'readWorkspaceFile',
            'writeWorkspaceFile',
            'createSession',
            'submitSessionTask',
            'submitTask',
            'deliverToConnector',
            ...(name.endsWith('2026-10-11') ? ['attachSessionClient', 'takeoverSessionClient'] : []),
          ]
        : ['createRun', 'retryRun'],
    );
  });
});

test('a table with a row that says nothing, or two things, does not load', () => {
  const row: RouteRow = { id: 'a', method: 'GET', path: '/a/{id}', handling: 'answer' };
  expect(() => routeTable([{ ...row, handling: undefined as never }])).toThrow('does not say what becomes of it');
  expect(() => routeTable([{ ...row, handling: 'refuse' }])).toThrow('does not say why');
  expect(() => routeTable([row, { ...row, id: 'b', path: '/a/{other}' }])).toThrow('two rows say what becomes of GET');
});
