/** Vaults: listed by name, never by value, and open only to those the policy names, when a secret is named and when it is used. */
import { createHmac } from 'node:crypto';
import type { CoreEvent } from '../../../../src/model/events.ts';
import type { Connector, Task, Vault } from '../../../../src/model/resources.ts';
import { absent, equal, truth } from '../harness/expect.ts';
import { GRANTED_SECRET, WEBHOOK_SECRET } from '../harness/gateway.ts';
import { category, each } from '../harness/suite.ts';
import { type Target, unique } from '../harness/target.ts';
import type { Answer, List, WireError } from '../harness/wire.ts';

interface Tenant {
  readonly as: string;
  readonly workspace: string;
}

async function tenant(at: Target, name: string, more: object = {}): Promise<Tenant> {
  const { key: as } = await at.mine().issue({ id: unique(name), tenant: name, ...more });
  const { id } = await at.ok<{ id: string }>('POST', '/v1/workspaces', { as, body: { name: 'w', root: 'x:y' } });
  return { as, workspace: id };
}

function connect(at: Target, { as, workspace }: Tenant, secret_name: string, more: object = {}) {
  const body = { provider: 'p', workspace_id: workspace, event_kinds: [], auth: { secret_name }, ...more };
  return at.ask<Connector & { error?: WireError }>('POST', '/v1/connectors', { as, body });
}

async function decisions(at: Target, { as, workspace }: Tenant): Promise<readonly string[]> {
  const { data } = await at.ok<List<CoreEvent>>('GET', `/v1/events?workspace_id=${workspace}&limit=200`, { as });
  return data.flatMap(({ event, payload }) => {
    const { action, decision } = payload as { action?: { kind: string }; decision?: { verdict: string } };
    return event === 'vendor.tollbridge.decided' && action?.kind === 'secret.use' ? [decision?.verdict ?? 'none'] : [];
  });
}

function refusedFor(answer: Answer<{ error?: WireError }>, secret: string): void {
  equal([answer.status, answer.body.error?.code], [422, 'policy_violation'], `naming ${secret}`);
  equal(answer.body.error?.param, 'auth.secret_name', 'the member it is about');
}

async function deliver(at: Target, connector: string, secret: string, delivery: string) {
  const raw = JSON.stringify({ text: 'hello' });
  const signature = createHmac('sha256', secret).update(raw).digest('hex');
  const headers = { 'x-harn-signature': `sha256=${signature}`, 'x-harn-delivery': delivery };
  return await at.ask<Task>('POST', `/v1/connectors/${connector}/deliveries`, { raw, headers, as: null });
}

export const vaults = category('vaults', {
  async 'configured vaults are resources, without values or names of secrets'(at) {
    at.mine();
    const { text, body } = await at.ask<List<Vault>>('GET', '/v1/vaults?limit=200');
    const env = body.data.find(({ metadata }) => metadata.name === 'env');
    truth(env, 'the vault env is not in the list');
    equal(
      [env.object, env.provider, env.workspace_id, env.capabilities],
      ['vault', 'env', null, ['read']],
      'the vault',
    );
    equal(await at.ok<Vault>('GET', `/v1/vaults/${env.id}`), env, 'the vault by its id');
    for (const hidden of [WEBHOOK_SECRET, GRANTED_SECRET, 'WEBHOOK', 'hook_one'])
      absent(text, hidden, `the list holds ${hidden}`);
  },
  async 'another tenant sees a vault only if a grant names it'(at) {
    const [other, granted] = [await tenant(at, 'other'), await tenant(at, 'granted')];
    const names = async ({ as }: Tenant) =>
      (await at.ok<List<Vault>>('GET', '/v1/vaults?limit=200', { as })).data.map(({ metadata }) => metadata.name);
    equal(await names(other), [], 'vaults of a tenant nobody granted anything');
    equal(await names(granted), ['shared'], 'vaults of a tenant with a grant');
    const hidden = await at.ok<List<Vault>>('GET', '/v1/vaults?limit=200');
    for (const { id } of hidden.data)
      await at.refused('resource_not_found', 'GET', `/v1/vaults/${id}`, { as: other.as });
    const body = { workspace_id: other.workspace, vault_ids: [hidden.data[0]!.id] };
    await at.refused('resource_not_found', 'POST', '/v1/sessions', { as: other.as, body });
  },
  ...each(
    ['WEBHOOK', 'env:WEBHOOK', 'hook_one', 'shared:hook_one', 'ABSENT', 'nowhere:ABSENT'],
    (secret) => `a tenant without a grant cannot name ${secret}, and the no is on record`,
    async (secret, at) => {
      const other = await tenant(at, 'other');
      refusedFor(await connect(at, other, secret), secret);
      refusedFor(await connect(at, other, 'ABSENT'), 'ABSENT');
      equal(await decisions(at, other), ['block', 'block'], 'decisions on record');
      equal((await at.ok<List<Connector>>('GET', '/v1/connectors', { as: other.as })).data, [], 'connectors made');
    },
  ),
  async 'a grant opens the secrets it names and no others'(at) {
    const granted = await tenant(at, 'granted');
    equal((await connect(at, granted, 'hook_one')).status, 201, 'the secret of the grant');
    equal((await connect(at, granted, 'shared:hook_one')).status, 201, 'the same with its vault');
    for (const secret of ['WEBHOOK', 'env:hook_one', 'shared:WEBHOOK', 'xhook_one']) {
      refusedFor(await connect(at, granted, secret), secret);
    }
  },
  async 'a grant for a persona is for connectors that work as that persona'(at) {
    const granted = await tenant(at, 'granted');
    const { data } = await at.ok<List<{ id: string }>>('GET', '/v1/personas?limit=200', { as: granted.as });
    truth(
      data.some(({ id }) => id === 'persona_reviewer'),
      'the persona of the configuration is not there',
    );
    refusedFor(await connect(at, granted, 'narrow_one'), 'narrow_one');
    const asPersona = { target_persona_id: 'persona_reviewer' };
    equal((await connect(at, granted, 'narrow_one', asPersona)).status, 201, 'as the persona');
    refusedFor(await connect(at, granted, 'hook_two', asPersona), 'hook_two');
  },
  async 'using a secret is decided again, and what it is for is taken from the connector'(at) {
    const granted = await tenant(at, 'granted');
    const { body: connector } = await connect(at, granted, 'hook_one');
    equal((await deliver(at, connector.id, WEBHOOK_SECRET, unique('d'))).status, 401, 'another secret');
    equal((await deliver(at, connector.id, GRANTED_SECRET, unique('d'))).status, 202, 'the right one');
    equal(await decisions(at, granted), ['allow', 'allow'], 'when it was named, and when it was used');
  },
});
