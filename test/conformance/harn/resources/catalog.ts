/** Providers and models: what the agents report, and nothing that nobody reported. */
import { equal, list, truth } from '../harness/expect.ts';
import { category } from '../harness/suite.ts';
import { unique } from '../harness/target.ts';

const LISTS = ['providers', 'models', 'aliases', 'variants', 'families'] as const;

export const catalog = category('provider-catalog', {
  async 'it names its schema and has every list'(at) {
    const body = await at.ok<Record<string, unknown>>('GET', '/v1/provider-catalog');
    truth(Number.isInteger(body.schema_version), 'schema_version');
    truth(typeof body.schema === 'string' && body.schema.includes(`v${body.schema_version}`), 'schema');
    for (const name of LISTS) list(body[name], name);
  },
  async 'no model belongs to a provider that is not listed'(at) {
    const body = await at.ok<Record<string, { id?: string; provider?: string }[]>>('GET', '/v1/provider-catalog');
    const known = body.providers!.map(({ id }) => id);
    for (const { provider } of body.models!) truth(known.includes(provider), `provider ${provider} is not listed`);
  },
  async 'it takes skills:read'(at) {
    const as = (await at.mine().issue({ id: unique('holder'), scopes: ['sessions:read'] })).key;
    await at.refused('permission_denied', 'GET', '/v1/provider-catalog', { as });
    const reader = (await at.mine().issue({ id: unique('holder'), scopes: ['skills:read'] })).key;
    equal((await at.ask('GET', '/v1/provider-catalog', { as: reader })).status, 200, 'with the scope');
  },
});
