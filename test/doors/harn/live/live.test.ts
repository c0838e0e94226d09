/** Attaching to live sessions: who watches, who controls, who may. */
import { describe, expect, test } from 'vitest';
import { createLiveClients } from '../../../../adapters/harn/server/live-clients.ts';
import type { Actor } from '../../../../src/model/actions.ts';
import { fakeClock } from '../../../support/gateway/clock.ts';
import { expectFault, openDoor, VERSION } from '../../../support/harn/gateway.ts';

const newer = { 'harn-agents-protocol-version': 'agents-protocol-2026-10-11' };
const as = (token: string) => ({ ...newer, authorization: `Bearer ${token}` });
const people: Record<string, Actor> = {
  bea: { id: 'bea', kind: 'person', scopes: ['*'] },
  giver: { id: 'giver', kind: 'service', scopes: ['sessions:read', 'tasks:write', 'events:read', 'others:read'] },
};

async function live() {
  const door = await openDoor({ people });
  const { session } = await door.room();
  const post = (what: string, body: object, token = 'ana') =>
    door.call('POST', `/v1/sessions/${session}/${what}`, body, as(token));
  return { ...door, session, post };
}

describe('attaching', () => {
  test('a controller prompts and is asked, an observer does neither; a takeover makes one the other', async () => {
    const { post, call, session } = await live();
    const desktop = await post('attach', {
      client_id: 'desktop',
      mode: 'controller',
      metadata: { surface: 'desktop' },
    });
    expect(desktop.body).toMatchObject({
      client: { client_id: 'desktop', mode: 'controller', prompt_injection: true, permission_routing: true },
      previous_controller_id: null,
      active_controller_id: 'desktop',
    });
    const phone = await post('attach', { client_id: 'phone' }, 'bea');
    expect(phone.body.client).toMatchObject({ mode: 'observer', prompt_injection: false, permission_routing: false });
    expectFault(
      await post('attach', { client_id: 'pad', mode: 'controller' }, 'bea'),
      409,
      'conflict',
      'conflict_error',
    );
    const taken = await post('takeover', { client_id: 'phone' }, 'bea');
    expect(taken.body).toMatchObject({ previous_controller_id: 'desktop', active_controller_id: 'phone' });
    expect(taken.body.clients.map(({ mode }: { mode: string }) => mode)).toEqual(['observer', 'controller']);
    const { body } = await call('GET', `/v1/sessions/${session}`, undefined, newer);
    expect([body.live_controller_id, body.live_clients.length]).toEqual(['phone', 2]);
    expect((await post('detach', { client_id: 'phone' }, 'bea')).body).toMatchObject({
      client: null,
      previous_controller_id: 'phone',
      active_controller_id: null,
    });
  });

  test('takes the scopes it is for: watching takes reading, controlling takes giving work, being asked takes answering', async () => {
    const { post } = await live();
    expect((await post('attach', { client_id: 'r' }, 'reader')).status).toBe(200);
    for (const what of ['attach', 'takeover']) {
      const answer = await post(what, { client_id: 'r', mode: 'controller' }, 'reader');
      expectFault(answer, 403, 'permission_denied', 'permission_error');
    }
    const giver = await post('attach', { client_id: 'g', mode: 'controller' }, 'giver');
    expect(giver.body.client).toMatchObject({ prompt_injection: true, permission_routing: false });
    const asked = await post('attach', { client_id: 'g', mode: 'controller', permission_routing: true }, 'giver');
    expectFault(asked, 403, 'permission_denied', 'permission_error');
    const eager = await post('attach', { client_id: 'r', prompt_injection: true }, 'reader');
    expectFault(eager, 400, 'invalid_request', 'request_error');
    expectFault(await post('attach', { client_id: 'a' }, 'acme'), 404, 'resource_not_found', 'not_found_error');
    expectFault(await post('attach', { client_id: 'n' }, 'nothing'), 403, 'permission_denied', 'permission_error');
  });

  test('a client is its owner’s: nobody else speaks in its name or throws it out', async () => {
    const { post } = await live();
    await post('attach', { client_id: 'desktop', mode: 'controller' });
    expectFault(await post('attach', { client_id: 'desktop' }, 'bea'), 409, 'conflict', 'conflict_error');
    expectFault(await post('takeover', { client_id: 'desktop' }, 'bea'), 409, 'conflict', 'conflict_error');
    for (const what of ['heartbeat', 'detach']) {
      const answer = await post(what, { client_id: 'desktop' }, 'bea');
      expectFault(answer, 404, 'resource_not_found', 'not_found_error');
    }
    expect((await post('heartbeat', { client_id: 'desktop', metadata: { x: 1 } })).body.client.metadata).toEqual({
      x: 1,
    });
    expectFault(await post('heartbeat', { client_id: 'absent' }), 404, 'resource_not_found', 'not_found_error');
  });

  test('is decided and written down; a heartbeat is not', async () => {
    const { post, at } = await live();
    await post('attach', { client_id: 'desktop', mode: 'controller' });
    await post('heartbeat', { client_id: 'desktop' });
    await post('detach', { client_id: 'desktop' });
    const written = (await at.all()).filter(({ event }) => event === 'vendor.tollbridge.passthrough');
    expect(written.map(({ payload }) => payload.method)).toEqual(['session/attach', 'session/detach']);
    const rules = '[{ id: all, then: allow }, { id: no, when: { tool: session/attach }, then: block, say: not here }]';
    const closed = await openDoor({ rules });
    const { session } = await closed.room();
    const answer = await closed.call('POST', `/v1/sessions/${session}/attach`, { client_id: 'x' }, newer);
    expectFault(answer, 422, 'policy_violation', 'permission_error');
    const { body } = await closed.call('GET', `/v1/sessions/${session}/live-clients`, undefined, newer);
    expect(body).toEqual({ object: 'list', data: [] });
  });

  test('a closed session has nobody in it', async () => {
    const { post, call, session } = await live();
    await call('POST', `/v1/sessions/${session}/close`, undefined, { 'harn-agents-protocol-version': VERSION });
    expectFault(await post('attach', { client_id: 'x' }), 409, 'conflict', 'conflict_error');
  });

  test.each(['', ' ', 'a b', 'x'.repeat(200), '../x', 'a\nb'])('%j is no name for a client', async (client_id) => {
    const { post } = await live();
    expectFault(await post('attach', { client_id }), 400, 'invalid_request', 'request_error');
  });
});

test('a client that falls silent is gone, and with it its control', () => {
  const clock = fakeClock();
  const clients = createLiveClients(clock, 60_000);
  const ana: Actor = { id: 'ana', kind: 'person', scopes: ['*'] };
  const controls = {
    client_id: 'a',
    mode: 'controller' as const,
    takeover: false,
    prompt_injection: true,
    permission_routing: true,
    metadata: {},
  };
  clients.attach('s', ana, controls);
  clock.advance(50_000);
  clients.heartbeat('s', ana, 'a');
  clock.advance(50_000);
  expect(clients.controller('s')).toBe('a');
  clock.advance(20_000);
  expect([clients.controller('s'), clients.list('s')]).toEqual([null, []]);
  for (let at = 0; at < 64; at += 1) clients.attach('s', ana, { ...controls, client_id: `c${at}`, takeover: true });
  expect(() => clients.attach('s', ana, { ...controls, client_id: 'one-more', takeover: true })).toThrow('at most 64');
});
