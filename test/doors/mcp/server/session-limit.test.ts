/** Sessions are counted by principal and in all, and give their place back when they end. */
import { expect, test } from 'vitest';
import { createSessionLimit } from '../../../../adapters/mcp/server/transports/session-limit.ts';
import type { Actor } from '../../../../src/model/actions.ts';

const caller = (id: string, tenant_id?: string): Actor => ({
  id,
  kind: 'service',
  scopes: [],
  ...(tenant_id && { tenant_id }),
});

test('one caller has its own limit, of its own tenant, and all of them have one together', () => {
  const limit = createSessionLimit(4, 2);
  expect([1, 2].map(() => limit.open(caller('a')))).toEqual([undefined, undefined]);
  expect(limit.open(caller('a'))).toContain('2 sessions of this caller are open');
  expect(limit.open(caller('a', 'other'))).toBeUndefined();
  expect(limit.open(caller('b'))).toBeUndefined();
  expect(limit.open(caller('c'))).toContain('too many sessions are open here');
  limit.closed(caller('a'));
  expect(limit.open(caller('c'))).toBeUndefined();
  expect(limit.open(caller('a'))).toContain('too many');
});
