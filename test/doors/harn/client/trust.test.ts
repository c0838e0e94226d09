/** What our client believes of a remote, and what it tells it. */
import { describe, expect, test } from 'vitest';
import type { Artifact } from '../../../../src/model/resources.ts';
import type { Row } from '../../../../src/ports/index.ts';
import { of } from '../../../support/gateway/test-gateway.ts';
import { openTwo, remoteAgent } from '../../../support/harn/two-gateways.ts';
import { openRelay } from '../../../support/wire/relay.ts';

describe('trust', () => {
  test('the token goes to the configured place and nowhere else; redirects are not followed', async () => {
    const two = await openTwo();
    const elsewhere = await openRelay(two.far.url);
    two.relay.answerWith((request, response) => {
      if (request.url !== '/v1') return false;
      response.writeHead(307, { location: `${elsewhere.url}/v1` }).end();
      return true;
    });
    const { id } = await two.give('hello');
    const task = await two.near.until(id);
    expect([task.status, task.failure?.message]).toEqual([
      'FAILED',
      'the remote answers with a redirect, which is not followed',
    ]);
    expect(elsewhere.calls).toEqual([]);
  });

  test('a token is refused plainly over http to another machine', () => {
    const make =
      (url: string, more = {}) =>
      () =>
        remoteAgent(url, more);
    expect(make('http://far.example')).toThrow('a remote has to be https');
    expect(make('https://far.example')).not.toThrow();
    expect(make('http://far.example', { insecure: true })).not.toThrow();
    expect(make('http://localhost:1')).not.toThrow();
    expect(make('https://me:secret@far.example')).toThrow('has no user');
    expect(make('ftp://far.example')).toThrow('a remote has to be https');
  });

  test('a wrong token is a failure that names it', async () => {
    const two = await openTwo({ far: { people: { ana: undefined as never } } });
    const { id } = await two.give('hello');
    const task = await two.near.until(id);
    expect([task.status, task.failure?.message]).toEqual([
      'FAILED',
      'the remote answered 401 unauthenticated: the token is not valid',
    ]);
  });

  test.each([
    ['checked', 'COMPLETED', undefined],
    ['required', 'FAILED', 'remote_receipt_invalid'],
  ] as const)('a receipt that was tampered with is seen, when receipts are %s', async (receipts, status, code) => {
    const two = await openTwo({ client: { receipts } });
    two.relay.answerWith((request, response) => {
      if (!request.url?.startsWith('/v1/receipts/')) return false;
      two.far.call('GET', request.url).then(({ body }) => {
        body.wire.payload.lifecycle.final_state = 'FAILED';
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
      });
      return true;
    });
    const { id } = await two.give('hello');
    const task = await two.near.until(id);
    expect([task.status, task.failure?.code]).toEqual([status, code]);
    expect(of(await two.near.events(id), 'vendor.tollbridge.note')[0]?.payload).toMatchObject({
      note: 'the receipt of the remote proves nothing',
      remote_receipt: { valid: false, reason: 'hash_mismatch' },
    });
  });

  test('a good receipt of another task proves nothing', async () => {
    const two = await openTwo();
    const other = await two.far.task('hello');
    await two.far.at.until(other.task);
    const { body } = await two.far.call('GET', `/v1/tasks/${other.task}`);
    two.relay.answerWith((request, response) => {
      if (!request.url?.startsWith('/v1/receipts/')) return false;
      two.far.call('GET', `/v1/receipts/${body.receipt_id}`).then((found) => {
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(found.body));
      });
      return true;
    });
    const { id } = await two.give('hello');
    await two.near.until(id);
    expect(of(await two.near.events(id), 'vendor.tollbridge.note')[0]?.payload).toMatchObject({
      remote_receipt: { valid: false, reason: 'another_receipt' },
    });
  });

  test('a file that is not what its hash says stays a reference', async () => {
    const two = await openTwo();
    two.relay.answerWith((request, response) => {
      if (!request.url?.endsWith('/content')) return false;
      response.writeHead(200, { 'content-type': 'text/plain' }).end('something else');
      return true;
    });
    const { id } = await two.give('artifact');
    expect((await two.near.until(id)).status).toBe('COMPLETED');
    const files = await two.near.runtime.store.list<Artifact & Row>({ object: 'artifact', where: { task_id: id } });
    expect(files).toHaveLength(2);
    for (const { uri, metadata } of files) {
      expect(uri).toContain('/v1/artifacts/');
      expect(metadata.bytes).toBeUndefined();
    }
  });
});
