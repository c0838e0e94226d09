import { describe, expect, test } from 'vitest';
import { anAction, aQuota, NOW } from '../../../fixtures/policies/actions.ts';
import { charge, createQuotaEngine, freshUsage, wouldExceed } from '../../../src/policy/quota.ts';

const engine = createQuotaEngine({ clock: { now: () => NOW } });
const judge = (quota: object, cost?: object) =>
  engine.judge(anAction({ quotas: [aQuota(quota)], ...(cost && { cost }) }));
const IN_30_S = '2026-11-16T12:00:30.000Z';
const IN_2_MIN = '2026-11-16T12:02:00.000Z';
const PASSED = '2026-11-16T11:59:59.000Z';

describe('the engine', () => {
  const cases: readonly [string, object, object | undefined, object][] = [
    ['room left', {}, { tool_calls: 6 }, { verdict: 'allow', code: 'no_objection' }],
    [
      'one too many',
      {},
      { tool_calls: 7 },
      {
        verdict: 'block',
        code: 'quota_exhausted',
        reason: 'limit tool_calls (10) of quota quota_1: 4 used, this needs 7',
        engine: 'quota',
      },
    ],
    ['no cost declared for a counted limit', { usage: { tool_calls: 10 } }, {}, { verdict: 'allow' }],
    ['no cost at all', { usage: { tool_calls: 10 } }, undefined, { verdict: 'allow' }],
    ['over the limit already', { usage: { tool_calls: 11 } }, undefined, { verdict: 'block', code: 'quota_exhausted' }],
    [
      'money is known only afterwards: used up',
      { limits: { usd_micros: 5 }, usage: { usd_micros: 5 } },
      { tool_calls: 1 },
      {
        verdict: 'block',
        reason: 'limit usd_micros (5) of quota quota_1: 5 used, this needs more',
      },
    ],
    [
      'money is known only afterwards: some left',
      { limits: { usd_micros: 5 }, usage: { usd_micros: 4 } },
      { tool_calls: 1 },
      { verdict: 'allow' },
    ],
    [
      'usage nobody counted',
      { usage: {} },
      { tool_calls: 1 },
      {
        verdict: 'escalate',
        code: 'quota_unknown',
        reason: 'limit tool_calls (10) of quota quota_1: how much is used is not known',
      },
    ],
    ['usage nobody counted, and no cost', { usage: {} }, undefined, { verdict: 'escalate', code: 'quota_unknown' }],
    [
      'usage that is no number',
      { usage: { tool_calls: Number.NaN } },
      { tool_calls: 1 },
      { verdict: 'escalate', code: 'quota_unknown' },
    ],
    [
      'usage below nothing',
      { usage: { tool_calls: -5 } },
      { tool_calls: 1 },
      { verdict: 'escalate', code: 'quota_unknown' },
    ],
    [
      'usage inherited from an object',
      { limits: { constructor: 3 }, usage: {} },
      { tool_calls: 1 },
      { verdict: 'escalate', code: 'quota_unknown' },
    ],
    [
      'a limit that is no number',
      { limits: { tool_calls: Number.NaN } },
      { tool_calls: 1 },
      { verdict: 'escalate', code: 'quota_unknown' },
    ],
    [
      'exhausted beats unknown',
      { limits: { emails: 3, tool_calls: 10 }, usage: { tool_calls: 10 } },
      { tool_calls: 1 },
      { verdict: 'block', code: 'quota_exhausted' },
    ],
    ['a negative cost buys nothing back', { usage: { tool_calls: 11 } }, { tool_calls: -5 }, { verdict: 'block' }],
    [
      'a window that has passed',
      { usage: { tool_calls: 10 }, reset_at: PASSED },
      { tool_calls: 1 },
      { verdict: 'allow' },
    ],
    [
      'a window that has passed, usage unknown before',
      { usage: {}, reset_at: PASSED },
      { tool_calls: 1 },
      { verdict: 'allow' },
    ],
    ['a window that has passed, cost above the limit', { reset_at: PASSED }, { tool_calls: 11 }, { verdict: 'block' }],
    [
      'a window about to open is waited for',
      { usage: { tool_calls: 10 }, reset_at: IN_30_S },
      { tool_calls: 1 },
      {
        verdict: 'defer',
        code: 'quota_exhausted',
        retry_after_ms: 30_000,
        reason: 'limit tool_calls (10) of quota quota_1: 10 used, this needs 1; opens again in 30 s',
      },
    ],
    [
      'a window far off is not',
      { usage: { tool_calls: 10 }, reset_at: IN_2_MIN },
      { tool_calls: 1 },
      { verdict: 'block' },
    ],
    ['waiting does not help what never fits', { reset_at: IN_30_S }, { tool_calls: 11 }, { verdict: 'block' }],
    [
      'an unreadable reset is no reset',
      { usage: { tool_calls: 10 }, reset_at: 'soon' },
      { tool_calls: 1 },
      { verdict: 'block' },
    ],
    [
      'a soft limit only warns',
      { soft_limit: true, usage: { tool_calls: 10 } },
      { tool_calls: 1 },
      {
        verdict: 'allow',
        code: 'quota_soft_limit',
        reason: 'soft limit tool_calls (10) of quota quota_1: 10 used, this needs 1',
      },
    ],
    [
      'not hard is soft',
      { hard_limit: false, usage: { tool_calls: 10 } },
      { tool_calls: 1 },
      { verdict: 'allow', code: 'quota_soft_limit' },
    ],
    [
      'hard and soft is hard',
      { hard_limit: true, soft_limit: true, usage: { tool_calls: 10 } },
      { tool_calls: 1 },
      { verdict: 'block' },
    ],
    [
      'soft and unknown only warns',
      { soft_limit: true, usage: {} },
      { tool_calls: 1 },
      { verdict: 'allow', code: 'quota_soft_limit' },
    ],
  ];
  test.each(cases)('%s', (_name, quota, cost, expected) => {
    expect(judge(quota, cost)).toMatchObject(expected);
  });

  test('no quota, no objection', () => {
    expect(engine.judge(anAction()).verdict).toBe('allow');
    expect(engine.judge(anAction({ quotas: [] })).verdict).toBe('allow');
  });
  test('the strictest of several quotas counts, and soft ones are still mentioned', () => {
    const quotas = [
      aQuota({ id: 'soft', soft_limit: true, usage: { tool_calls: 10 } }),
      aQuota({ id: 'soon', usage: { tool_calls: 10 }, reset_at: IN_30_S }),
      aQuota({ id: 'gone', usage: { tool_calls: 10 } }),
    ];
    expect(engine.judge(anAction({ quotas, cost: { tool_calls: 1 } }))).toEqual({
      verdict: 'block',
      code: 'quota_exhausted',
      reason:
        'limit tool_calls (10) of quota gone: 10 used, this needs 1; soft limit tool_calls (10) of quota soft: 10 used, this needs 1',
      engine: 'quota',
    });
  });
});

describe('the pure functions core uses in its commit', () => {
  test('wouldExceed names limit, usage and quota', () => {
    expect(wouldExceed(aQuota(), { tool_calls: 7 }, NOW)).toEqual({
      kind: 'exceeds',
      quota_id: 'quota_1',
      limit: 'tool_calls',
      allowed: 10,
      used: 4,
      cost: 7,
      soft: false,
      retry_after_ms: undefined,
    });
    expect(wouldExceed(aQuota(), { tool_calls: 6 }, NOW)).toBeUndefined();
    expect(wouldExceed(aQuota({ usage: {} }), { tool_calls: 6 }, NOW)).toMatchObject({
      kind: 'unknown',
      used: undefined,
    });
  });

  const charges: readonly [string, object, object | undefined, object][] = [
    ['adds up', {}, { tool_calls: 2 }, { usage: { tool_calls: 6 }, reset_at: null }],
    ['counts what is not limited too', {}, { prompts: 1 }, { usage: { tool_calls: 4, prompts: 1 }, reset_at: null }],
    ['nothing to charge', {}, undefined, { usage: { tool_calls: 4 }, reset_at: null }],
    ['unknown stays unknown', { usage: {} }, { tool_calls: 2 }, { usage: {}, reset_at: null }],
    ['keeps the window', { reset_at: IN_30_S }, { tool_calls: 2 }, { usage: { tool_calls: 6 }, reset_at: IN_30_S }],
    [
      'a new window starts from nothing',
      { reset_at: PASSED },
      { tool_calls: 2 },
      { usage: { tool_calls: 2 }, reset_at: null },
    ],
    [
      'a new window makes the unknown known',
      { usage: {}, reset_at: PASSED },
      { tool_calls: 2 },
      { usage: { tool_calls: 2 }, reset_at: null },
    ],
    [
      'the next window follows from its length',
      { reset_at: PASSED, metadata: { window_ms: 60_000 } },
      { tool_calls: 2 },
      {
        usage: { tool_calls: 2 },
        reset_at: '2026-11-16T12:00:59.000Z',
      },
    ],
    [
      'windows nobody used are skipped',
      { reset_at: '2026-11-16T10:00:00.000Z', metadata: { window_ms: 3_600_000 } },
      {},
      {
        usage: { tool_calls: 0 },
        reset_at: '2026-11-16T13:00:00.000Z',
      },
    ],
    [
      'a window length that is none',
      { reset_at: PASSED, metadata: { window_ms: 0 } },
      {},
      { usage: { tool_calls: 0 }, reset_at: null },
    ],
    ['a negative cost is no cost', {}, { tool_calls: -3 }, { usage: { tool_calls: 4 }, reset_at: null }],
  ];
  test.each(charges)('charge: %s', (_name, quota, cost, expected) => {
    expect(charge(aQuota(quota), cost as Record<string, number> | undefined, NOW)).toEqual(expected);
  });

  test('charging does not touch what it is given', () => {
    const quota = aQuota();
    charge(quota, { tool_calls: 1 }, NOW);
    expect(quota.usage).toEqual({ tool_calls: 4 });
  });
  test('a new quota starts with nothing used, which is known', () => {
    expect(freshUsage({ a: 1, b: 2 })).toEqual({ a: 0, b: 0 });
  });
});
