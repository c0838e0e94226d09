/** Attaching to a live session: who watches, who controls, whose name is whose, and what is written down of it. */
import type { Session } from '../../../../src/model/resources.ts';
import { outsider } from '../access/tenants.ts';
import { equal, truth } from '../harness/expect.ts';
import { category, each } from '../harness/suite.ts';
import { type Target, unique } from '../harness/target.ts';
import type { Asking, List } from '../harness/wire.ts';

interface Client {
  readonly client_id: string;
  readonly mode: string;
  readonly prompt_injection: boolean;
  readonly permission_routing: boolean;
  readonly metadata: object;
}
interface Change {
  readonly client: Client | null;
  readonly previous_controller_id: string | null;
  readonly active_controller_id: string | null;
  readonly clients: readonly Client[];
}
type Live = Session & { readonly live_clients: readonly Client[]; readonly live_controller_id: string | null };

const paths = (session: string) => (what: string) => `/v1/sessions/${session}/${what}`;
const change = (at: Target, path: string, body: object, asking: Asking = {}) =>
  at.ok<Change>('POST', path, { ...asking, body });
const modes = (clients: readonly Client[]) => clients.map(({ client_id, mode }) => `${client_id} ${mode}`);

export const liveClients = category('live-clients', {
  async 'an observer neither prompts nor is asked; a controller does both'(at) {
    const to = paths((await at.session()).id);
    const watcher = await change(at, to('attach'), { client_id: 'phone', metadata: { surface: 'phone' } });
    equal(watcher.client?.mode, 'observer', 'mode of a client that names none');
    equal([watcher.client?.prompt_injection, watcher.client?.permission_routing], [false, false], 'observer');
    equal([watcher.active_controller_id, watcher.client?.metadata], [null, { surface: 'phone' }], 'nobody controls');
    const driver = await change(at, to('attach'), { client_id: 'desktop', mode: 'controller' });
    equal([driver.client?.prompt_injection, driver.client?.permission_routing], [true, true], 'controller');
    equal([driver.previous_controller_id, driver.active_controller_id], [null, 'desktop'], 'controllers');
  },
  async 'control changes hands by a takeover and by nothing else'(at) {
    const { id } = await at.session();
    const to = paths(id);
    await change(at, to('attach'), { client_id: 'desktop', mode: 'controller' });
    await at.refused('conflict', 'POST', to('attach'), { body: { client_id: 'phone', mode: 'controller' } });
    equal((await at.ok<Live>('GET', `/v1/sessions/${id}`)).live_controller_id, 'desktop', 'after the refusal');
    const taken = await change(at, to('takeover'), { client_id: 'phone' });
    equal([taken.previous_controller_id, taken.active_controller_id], ['desktop', 'phone'], 'controllers');
    equal(modes(taken.clients), ['desktop observer', 'phone controller'], 'clients');
  },
  async 'the session and its list of clients say the same, in every reading'(at) {
    const session = await at.session({ workspace_id: (await at.workspace()).id });
    const to = paths(session.id);
    await change(at, to('attach'), { client_id: 'desktop', mode: 'controller' });
    await change(at, to('attach'), { client_id: 'phone' });
    const { data } = await at.ok<List<Client>>('GET', to('live-clients'));
    equal(modes(data), ['desktop controller', 'phone observer'], 'the list');
    const one = await at.ok<Live>('GET', `/v1/sessions/${session.id}`);
    equal([one.live_clients, one.live_controller_id], [data, 'desktop'], 'the session');
    const listed = await at.ok<List<Live>>('GET', `/v1/sessions?workspace_id=${session.workspace_id}&limit=200`);
    equal(listed.data.find(({ id }) => id === session.id)?.live_clients, data, 'the session in a list');
  },
  async 'who detaches is gone, and with it its control'(at) {
    const { id } = await at.session();
    const to = paths(id);
    await change(at, to('attach'), { client_id: 'desktop', mode: 'controller' });
    const gone = await change(at, to('detach'), { client_id: 'desktop', reason: 'done' });
    equal([gone.client, gone.active_controller_id, gone.clients], [null, null, []], 'after the detach');
    equal((await at.ok<Live>('GET', `/v1/sessions/${id}`)).live_clients, [], 'clients of the session');
    await at.refused('resource_not_found', 'POST', to('heartbeat'), { body: { client_id: 'desktop' } });
  },
  async 'a heartbeat is for those who are there, and is not history'(at) {
    const { id } = await at.session();
    const to = paths(id);
    await at.refused('resource_not_found', 'POST', to('heartbeat'), { body: { client_id: 'absent' } });
    await change(at, to('attach'), { client_id: 'desktop' });
    const before = (await at.events(`/v1/sessions/${id}/events`)).length;
    const beat = await change(at, to('heartbeat'), { client_id: 'desktop', metadata: { battery: 7 } });
    equal(beat.client?.metadata, { battery: 7 }, 'metadata');
    equal((await at.events(`/v1/sessions/${id}/events`)).length, before, 'events');
  },
  async 'a client is its owner’s: nobody else speaks in its name'(at) {
    const as = (await at.mine().issue({ id: unique('colleague') })).key;
    const { id } = await at.session();
    const to = paths(id);
    await change(at, to('attach'), { client_id: 'desktop', mode: 'controller' });
    for (const what of ['attach', 'takeover']) {
      await at.refused('conflict', 'POST', to(what), { as, body: { client_id: 'desktop' } });
    }
    for (const what of ['detach', 'heartbeat']) {
      await at.refused('resource_not_found', 'POST', to(what), { as, body: { client_id: 'desktop' } });
    }
    equal((await at.ok<Live>('GET', `/v1/sessions/${id}`)).live_controller_id, 'desktop', 'the controller');
  },
  ...each(
    [
      ['watching takes sessions:read', ['events:read'], {}],
      ['controlling takes tasks:write', ['sessions:read', 'others:read'], { mode: 'controller' }],
      [
        'being asked takes approvals:write',
        ['sessions:read', 'others:read', 'tasks:write'],
        { mode: 'controller', permission_routing: true },
      ],
    ] as const,
    ([name]) => name,
    async ([, scopes, how], at) => {
      const as = (await at.mine().issue({ id: unique('holder'), scopes })).key;
      const { id } = await at.session();
      const body = { client_id: 'x', ...how };
      await at.refused('permission_denied', 'POST', `/v1/sessions/${id}/attach`, { as, body });
      equal((await at.ok<Live>('GET', `/v1/sessions/${id}`)).live_clients, [], 'clients');
    },
  ),
  async 'a session of another tenant is not there to attach to'(at) {
    const as = outsider(at);
    const to = paths((await at.session()).id);
    for (const what of ['attach', 'takeover', 'detach', 'heartbeat']) {
      await at.refused('resource_not_found', 'POST', to(what), { as, body: { client_id: 'x' } });
    }
    await at.refused('resource_not_found', 'GET', to('live-clients'), { as });
  },
  async 'a session that is over has nobody in it'(at) {
    const { id } = await at.session();
    await at.ok('POST', `/v1/sessions/${id}/close`);
    await at.refused('conflict', 'POST', `/v1/sessions/${id}/attach`, { body: { client_id: 'x' } });
  },
  async 'attaching and leaving are in the log'(at) {
    const { id } = await at.session();
    const before = (await at.events(`/v1/sessions/${id}/events`)).length;
    await change(at, paths(id)('attach'), { client_id: 'desktop', mode: 'controller' });
    const attached = (await at.events(`/v1/sessions/${id}/events`)).length;
    truth(attached > before, 'the attachment left no event');
    await change(at, paths(id)('detach'), { client_id: 'desktop' });
    truth((await at.events(`/v1/sessions/${id}/events`)).length > attached, 'leaving left no event');
  },
  ...each(
    [{}, { client_id: '' }, { client_id: 'a b' }, { client_id: 'x', mode: 'owner' }, { client_id: 'x', mode: 1 }],
    (body) => `attaching with ${JSON.stringify(body)} is 400`,
    async (body, at) => {
      await at.refused('invalid_request', 'POST', `/v1/sessions/${(await at.session()).id}/attach`, { body });
    },
  ),
});
