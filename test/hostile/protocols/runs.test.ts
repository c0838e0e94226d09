/** The runs API against the built process, with an instrumented agent behind it. */
import { describe, expect, test } from 'vitest';
import { type Answer, type Serving, serving } from '../../support/process/served.ts';

const CONFIG = 'default_agent: recorder\ndoors: { runs: {} }\n';
const pair = (key: string) => key.replace(/^(tbk_[0-9a-f]{16})_/, '$1:');
let keys = 0;

async function open() {
  const gateway = await serving({ config: CONFIG });
  const own = `local:${gateway.token}`;
  const send = (path: string, body?: unknown, more: { method?: string; key?: string; once?: string } = {}) =>
    gateway.send(path, {
      method: more.method ?? (body === undefined ? 'GET' : 'POST'),
      headers: {
        authorization: `Bearer ${more.key ?? own}`,
        'idempotency-key': more.once ?? `key-of-request-${++keys}`,
      },
      body,
    });
  return { gateway, send };
}
type Send = Awaited<ReturnType<typeof open>>['send'];

const query = (words: string) => ({ input: { user_query: words }, metadata: {} });
const reason = ({ json }: Answer) => json.reason_code ?? json.error;

async function unharmed(gateway: Serving, send: Send): Promise<void> {
  expect(gateway.input()).toEqual([]);
  const made = await send('/v1/runs', query('still here'));
  expect([201, 202]).toContain(made.status);
  await expect.poll(() => gateway.input(), { timeout: 10_000 }).toHaveLength(1);
  expect(gateway.input()[0]).toContain('still here');
}

describe('requests of the runs API', { timeout: 60_000 }, () => {
  test('bodies that can be read in two ways, or by some readers only, start nothing', async () => {
    const { gateway, send } = await open();
    const input = JSON.stringify(query('go').input);
    for (const body of [
      `{"input":${input},"input":${input}}`,
      `{"input":{"user_query":"a","user_query":"b"}}`,
      `{"input":${input},"\\u0069nput":${input}}`,
      `\ufeff{"input":${input}}`,
      `{"input":${input}}\u0000`,
      `[{"input":${input}}]`,
      `{"input":${input}`,
      '"input"',
      'null',
    ]) {
      const answer = await send('/v1/runs', body);
      expect([body, answer.status >= 400 && answer.status < 500], answer.text).toEqual([body, true]);
    }
    await unharmed(gateway, send);
  });

  test('routes and methods without a row are not served', async () => {
    const { gateway, send } = await open();
    for (const method of ['PUT', 'PATCH', 'DELETE'])
      expect([method, (await send('/v1/runs', query('go'), { method })).status]).toEqual([method, 404]);
    for (const path of ['/v1/runs/', '/v1/runs/__proto__/signal', '/v1/runs/%252e%252e/cancel', '/v1/runs/a/b/c'])
      expect([path, (await send(path, {})).status]).toEqual([path, 404]);
    await unharmed(gateway, send);
  });

  test('H22: one key, one run, however often and how fast it is asked for; another body is a conflict', async () => {
    const { gateway, send } = await open();
    const same = { once: 'the-same-key-each-time' };
    const answers = await Promise.all(Array.from({ length: 20 }, () => send('/v1/runs', query('once'), same)));
    expect(new Set(answers.map(({ json }) => json.id)).size).toBe(1);
    const other = await send('/v1/runs', query('another thing'), same);
    expect([other.status, reason(other)]).toEqual([409, 'IDEMPOTENCY_KEY_REUSED']);
    await expect.poll(() => gateway.input().length, { timeout: 10_000 }).toBe(1);
  });

  test("H16: another key's run is not there: not to see, follow, stop, retry, resume or answer", async () => {
    const { gateway, send } = await open();
    const scopes = ['tasks:read', 'tasks:write', 'sessions:read', 'sessions:write', 'events:read', 'workspaces:read'];
    const more = [...scopes, 'approvals:write'].flatMap((scope) => ['--scope', scope]);
    const [ana, eve] = [pair(await gateway.key('ana', ...more)), pair(await gateway.key('eve', ...more))];
    const made = await send('/v1/runs', query('hold this'), { key: ana });
    const id = String(made.json.id);
    await expect.poll(() => gateway.input().length, { timeout: 10_000 }).toBe(1);
    const tries: readonly [string, object | undefined][] = [
      ['', undefined],
      ['/events', undefined],
      ['/events/stream', undefined],
      ['/cancel', {}],
      ['/retry', {}],
      ['/resume', {}],
      ['/signal', { action: 'approve' }],
    ];
    for (const [what, body] of tries) {
      const theirs = await send(`/v1/runs/${id}${what}`, body, { key: eve });
      const absent = await send(`/v1/runs/run_that_never_was${what}`, body, { key: eve });
      expect([what, theirs.status, reason(theirs)]).toEqual([what, absent.status, reason(absent)]);
      expect(theirs.status).toBe(404);
    }
    const still = await send(`/v1/runs/${id}`, undefined, { key: ana });
    expect(still.json.status).toBe('running');
    expect((await send(`/v1/runs/${id}/cancel`, {}, { key: ana })).status).toBeLessThan(300);
  });

  test('H21: a signal to a run that waits for nothing is refused and changes nothing', async () => {
    const { gateway, send } = await open();
    const made = await send('/v1/runs', query('hold this'));
    await expect.poll(() => gateway.input().length, { timeout: 10_000 }).toBe(1);
    for (const action of ['approve', 'reject', 'submit_input', '__proto__', '']) {
      const { status } = await send(`/v1/runs/${made.json.id}/signal`, { action, payload: {} });
      expect([action, status >= 400 && status < 500]).toEqual([action, true]);
    }
    expect((await send(`/v1/runs/${made.json.id}`)).json.status).toBe('running');
  });
});
