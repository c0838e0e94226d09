/** An approval for longer than once: the same tool of the same server is not asked about again, for as long as was said. */
import { expect, onTestFinished, test } from 'vitest';
import { answer } from '../../../src/cli/commands/approvals/approvals.ts';
import type { AskRecord } from '../../../src/model/asks.ts';
import type { Row } from '../../../src/ports/index.ts';
import { eventually } from '../../support/eventually.ts';
import { openMcpGateway } from '../../support/mcp/gateway.ts';
import { openLegacyClient, outcome } from '../../support/mcp/one-server.ts';
import { echo, openUpstream } from '../../support/mcp/upstream.ts';
import { aDirectory, typed } from '../../support/process/cli.ts';

async function openAsking() {
  const data = await aDirectory();
  const upstream = await openUpstream({ tools: { echo } });
  const gateway = await openMcpGateway({
    upstreams: { u: { url: upstream.url }, v: { url: upstream.url } },
    dir: data,
    rules: () =>
      '- { id: ask, when: { tool: echo }, then: ask }\n- { id: no, when: { arguments: { text: bad } }, then: block }',
  });
  onTestFinished(async () => {
    await gateway.close();
    await upstream.close();
  });
  const open = async () =>
    (await gateway.runtime.store.list<AskRecord & Row>({ object: 'ask', where: { state: 'open' }, limit: 10 }))[0];
  /** What comes of a call; a question is answered with `how`. */
  const caller = async (server: string) => {
    const client = await openLegacyClient(gateway.at(server));
    return async (how: { for?: string } | 'deny' = 'deny', text = 'hi'): Promise<string> => {
      let done = false;
      const call = client.request('tools/call', { name: 'echo', arguments: { text } }).finally(() => {
        done = true;
      });
      await eventually(async () => done || (await open()) !== undefined, 'a result or a question');
      const ask = await open();
      if (ask) {
        const options = how === 'deny' ? { data } : { data, ...how };
        const { err } = await typed(() => answer(ask.id, how !== 'deny', undefined, options));
        if (err) throw new Error(err);
      }
      const { result } = outcome(await call);
      return ask ? 'asked' : result.isError ? 'refused' : 'ran';
    };
  };
  return { caller };
}

test('for the session: not in another session, not at another server, and never what a rule blocks', async () => {
  const { caller } = await openAsking();
  const [here, there, other] = [await caller('u'), await caller('v'), await caller('u')];
  expect(await here({})).toBe('asked');
  // It was given when the session had read content of this server, so it covers that.
  expect(await here({ for: 'session' })).toBe('asked');
  await eventually(async () => (await here()) === 'ran', 'the grant to hold');
  expect(await here('deny', 'another text')).toBe('ran');
  expect(await here('deny', 'bad')).toBe('refused');
  expect(await other()).toBe('asked');
  expect(await there()).toBe('asked');
});

test('for a time: in other sessions of the caller too; not in one that has read untrusted content since', async () => {
  const { caller } = await openAsking();
  const here = await caller('u');
  expect(await here({ for: '1h' })).toBe('asked');
  await eventually(async () => (await (await caller('u'))()) === 'ran', 'the grant to hold');
  // The first call has returned untrusted content to this session; nobody has approved anything there since.
  expect(await here()).toBe('asked');
});

test('a time that is none is refused before anything is approved', async () => {
  const { caller } = await openAsking();
  const here = await caller('u');
  const call = here({ for: 'ever' });
  await expect(call).rejects.toThrow('for takes "session" or a time such as 30m, 2h or 1d, and not ever');
});
