/** URLs of databases: how they connect, and what messages may say of them. */
import { expect, test } from 'vitest';
import { nameOf, targetOf } from '../../../../src/store/postgres/location.ts';

test('a URL names host, port, user and database; a name never holds a password', () => {
  const { host, port, user, database } = targetOf({ url: 'postgres://ana%40x@db.example:6432/the%20log' });
  expect({ host, port, user, database }).toEqual({
    host: 'db.example',
    port: 6432,
    user: 'ana@x',
    database: 'the log',
  });
  expect(targetOf({ url: 'postgresql://db.example/log' })).toMatchObject({ port: 5432, user: 'postgres' });
  expect(nameOf({ url: 'postgres://ana:hunter2@db.example/log?sslmode=require' })).toBe(
    'postgres://ana@db.example/log',
  );
  expect(nameOf({ url: 'postgres://db.example/log', schema: 'two' })).toBe('postgres://db.example/log (schema two)');
});

test.each([
  [
    'postgres://ana:hunter2@db.example/log',
    'the URL of the store must not hold a password: put it into a vault, and name it with `secret`',
  ],
  ['mysql://db.example/log', 'the URL of the store must look like postgres://user@host:5432/database'],
  ['postgres://db.example', 'the URL of the store needs a host and a database: postgres://user@host:5432/database'],
  [
    'postgres://db.example/log?sslmode=prefer',
    'the URL of the store has sslmode prefer; there are disable, require, verify-ca, verify-full',
  ],
  [
    'postgres://db.example/log?options=-c',
    'the URL of the store has the parameter options; there are sslmode, sslrootcert, sslcert, sslkey',
  ],
])('%s is refused', (url, message) => {
  expect(() => targetOf({ url })).toThrow(message);
});

test('a server that is not on this machine is verified unless the URL says otherwise', () => {
  expect(targetOf({ url: 'postgres://127.0.0.1/log' }).ssl).toBe(false);
  expect(targetOf({ url: 'postgres://localhost/log' }).ssl).toBe(false);
  expect(targetOf({ url: 'postgres://db.example/log' }).ssl).toEqual({ rejectUnauthorized: true });
  expect(targetOf({ url: 'postgres://127.0.0.1/log?sslmode=verify-full' }).ssl).toEqual({ rejectUnauthorized: true });
  expect(targetOf({ url: 'postgres://db.example/log?sslmode=disable' }).ssl).toBe(false);
  expect(targetOf({ url: 'postgres://db.example/log?sslmode=require' }).ssl).toMatchObject({
    rejectUnauthorized: false,
  });
  expect(targetOf({ url: 'postgres://db.example/log?sslmode=verify-ca' }).ssl).toMatchObject({
    rejectUnauthorized: true,
  });
});
