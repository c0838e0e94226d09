/** Names of sessions that another replica can go on with: they say what was said, to nobody but the caller they were made for. */
import { createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import { createSessionNames } from '../../../../adapters/mcp/server/transports/session-name.ts';

const MARK = '~01ARZ3NDEKTSV4RRFFQ69G5FAV';
const SAID = {
  protocolVersion: '2025-11-25',
  capabilities: { elicitation: { form: {} } },
  clientInfo: { name: 'c', version: '1' },
};
const mac = (key: string) => (text: string) => `hmac-sha256:${createHmac('sha256', key).update(text).digest('hex')}`;
const names = (key = 'k', more: object = {}) => createSessionNames({ mark: () => MARK, mac: mac(key), ...more });

test('what was said is in the name, for its owner and for each replica with the same keys', () => {
  const name = names().make({ ...SAID, _meta: { secret: 1 } }, 'ana@');
  expect(name.endsWith(MARK)).toBe(true);
  expect(name).toMatch(/^[\x21-\x7e]+$/);
  expect(names().read(name, 'ana@')).toEqual(SAID);
});

test('another owner, address or key, and every change, read nothing', () => {
  const name = names().make(SAID, 'ana@');
  expect(names().read(name, 'bob@')).toBeUndefined();
  expect(names().read(name, 'ana@box')).toBeUndefined();
  expect(names('another').read(name, 'ana@')).toBeUndefined();
  const [random, packed, rest] = name.split('.') as [string, string, string];
  const other = names()
    .make({ ...SAID, capabilities: {} }, 'ana@')
    .split('.')[1] as string;
  for (const forged of [
    `${random}.${other}.${rest}`,
    `${'A'.repeat(24)}.${packed}.${rest}`,
    `${random}.${packed}.~`,
    MARK,
    '',
  ])
    expect(names().read(forged, 'ana@')).toBeUndefined();
});

test('a name is good for a day', () => {
  let now = 0;
  const mine = names('k', { now: () => now });
  const name = mine.make(SAID, 'ana@');
  now = 24 * 3_600_000;
  expect(mine.read(name, 'ana@')).toEqual(SAID);
  now += 1;
  expect(mine.read(name, 'ana@')).toBeUndefined();
});

test('a client that says a lot, and a gateway that is alone, get a name that says nothing', () => {
  const long = { ...SAID, capabilities: { x: Array.from({ length: 3000 }, (_, at) => String(Math.sin(at))).join() } };
  const name = names().make(long, 'ana@');
  expect(name).toMatch(/^[A-Za-z0-9_-]{24}~/);
  expect(names().read(name, 'ana@')).toBeUndefined();
  expect(createSessionNames({ mark: () => '', mac: mac('k') }).make(SAID, 'ana@')).toMatch(/^[A-Za-z0-9_-]{24}$/);
});
