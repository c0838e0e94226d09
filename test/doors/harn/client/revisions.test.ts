/** Which revision our client speaks to a remote, and what it does when the remote changes its mind. */
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createHarnRemote } from '../../../../adapters/harn/client/http.ts';
import { openTwo } from '../../../support/harn/two-gateways.ts';

const OLD = 'agents-protocol-2026-04-25';
const NEW = 'agents-protocol-2026-10-11';

interface Seen {
  readonly at: string;
  readonly version: string | undefined;
  readonly key: string | undefined;
}

/** A remote that speaks these versions; `strict` also on its public operations. */
async function remoteSpeaking(initial: readonly string[] | undefined, strict = false) {
  const state = { speaks: initial };
  const seen: Seen[] = [];
  const head = (request: IncomingMessage, name: string) => request.headersDistinct[name]?.[0];
  const server = createServer((request, response) => {
    const version = head(request, 'harn-agents-protocol-version');
    const at = `${request.method} ${request.url}`;
    seen.push({ at, version, key: head(request, 'idempotency-key') });
    const knows = !state.speaks || state.speaks.includes(version ?? '');
    const open = request.url === '/v1' && !strict;
    response.statusCode = knows || open ? 200 : 426;
    const error = { code: 'unsupported_protocol_version', message: 'no' };
    const discovery = { object: 'protocol_discovery', ...(state.speaks && { supported_versions: state.speaks }) };
    response.end(
      JSON.stringify(response.statusCode === 426 ? { error } : request.url === '/v1' ? discovery : { ok: 1 }),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const base = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  const remote = createHarnRemote({ base, requestMs: 5000, token: async () => undefined });
  return { remote, seen, state };
}

test.each([
  [[NEW], NEW],
  [[OLD], OLD],
  [[OLD, NEW], NEW],
  [['agents-protocol-2099-01-01', OLD], OLD],
  [undefined, OLD],
])('a remote of %j is spoken to in the newest common one', async (speaks, version) => {
  for (const strict of [false, true]) {
    const { remote, seen } = await remoteSpeaking(speaks, strict && speaks !== undefined);
    await remote.discover();
    expect(remote.revision.version).toBe(version);
    await remote.call('GET', '/v1/tasks');
    expect(seen.at(-1)).toMatchObject({ at: 'GET /v1/tasks', version });
  }
});

test('a remote with none of ours is distinguished from one that is broken', async () => {
  const { remote } = await remoteSpeaking(['agents-protocol-2099-01-01']);
  await expect(remote.discover()).rejects.toThrow('speaks none of');
});

test('keys are sent where the revision in use takes them, and nowhere else', async () => {
  for (const version of [OLD, NEW]) {
    const { remote, seen } = await remoteSpeaking([version]);
    await remote.discover();
    const sent: Record<string, boolean> = {};
    for (const path of ['/v1/sessions', '/v1/sessions/s/messages', '/v1/sessions/s/tasks', '/v1/tasks/t/cancel']) {
      await remote.call('POST', path, { body: {}, key: 'k' });
      sent[path] = seen.at(-1)?.key === 'k';
      expect(sent[path]).toBe(remote.keyed('POST', path));
    }
    const everywhere = version === OLD;
    expect(sent).toEqual({
      '/v1/sessions': everywhere,
      '/v1/sessions/s/messages': everywhere,
      '/v1/sessions/s/tasks': true,
      '/v1/tasks/t/cancel': everywhere,
    });
  }
});

test('a remote that was replaced by an older or a newer one is spoken to in its own, without a restart of ours', async () => {
  const { remote, seen, state } = await remoteSpeaking([NEW]);
  await remote.discover();
  state.speaks = [OLD];
  await remote.call('POST', '/v1/sessions/s/tasks', { body: {}, key: 'k' });
  expect(remote.revision.version).toBe(OLD);
  expect(seen.map(({ at, version }) => [at, version]).slice(-3)).toEqual([
    ['POST /v1/sessions/s/tasks', NEW],
    ['GET /v1', NEW],
    ['POST /v1/sessions/s/tasks', OLD],
  ]);
  state.speaks = [NEW];
  await remote.call('GET', '/v1/tasks');
  expect(remote.revision.version).toBe(NEW);
  state.speaks = ['other'];
  await expect(remote.call('GET', '/v1/tasks')).rejects.toThrow();
});

test('two gateways speak the newer revision to each other, and one session there stands for one here', async () => {
  const two = await openTwo();
  const { id, session } = await two.give('hello');
  expect((await two.near.until(id)).status).toBe('COMPLETED');
  const list = async () => (await two.far.call('GET', '/v1/sessions')).body.data;
  expect((await list()).map(({ metadata }: { metadata: object }) => metadata)).toEqual([
    { tollbridge: { session_id: session } },
  ]);
});
