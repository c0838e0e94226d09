/** Who may use which secret: grants fit as a whole or not at all, and nothing is open to a tenant by default. */
import { describe, expect, test } from 'vitest';
import { createVaultAccess } from '../../../src/auth/vault-access.ts';
import { createSecrets } from '../../../src/auth/vaults.ts';
import { WITHOUT_TENANT } from '../../../src/core/commands/secret-use.ts';
import { createRedactor } from '../../../src/core/redaction/redact.ts';

const user = (tenant_id: string | null, workspace_id: string | null = 'w1', persona_id: string | null = null) => ({
  tenant_id,
  workspace_id,
  persona_id,
});

describe('grants', () => {
  const access = createVaultAccess([
    { name: 'own' },
    {
      name: 'shared',
      access: [
        { tenants: ['acme'], secrets: ['hook_*', 'a*b*c'] },
        { tenants: ['acme'], workspaces: ['w2'], personas: ['reviewer'], secrets: ['stripe'] },
        { tenants: ['*'], secrets: ['everyone'] },
      ],
    },
    { name: 'closed', access: [] },
    { name: 'untenanted', access: [{ secrets: ['local'] }] },
  ]);
  test.each([
    ['github', user(null), ['own']],
    ['own:github', user(null), ['own']],
    ['closed:github', user(null), []],
    ['nowhere:github', user(null), []],
    ['local', user(null), ['own', 'untenanted']],
    ['everyone', user(null), ['own', 'shared']],
    ['github', user('acme'), []],
    ['local', user('acme'), []],
    ['own:everyone', user('acme'), []],
    ['everyone', user('acme'), ['shared']],
    ['everyone', user('other'), ['shared']],
    ['hook_', user('acme'), ['shared']],
    ['hook_1', user('acme'), ['shared']],
    ['xhook_1', user('acme'), []],
    ['hook', user('acme'), []],
    ['Hook_1', user('acme'), []],
    ['hook_1', user('ACME'), []],
    ['hook_1', user(''), []],
    ['abc', user('acme'), ['shared']],
    ['a1b2c', user('acme'), ['shared']],
    ['ac', user('acme'), []],
    ['abxc1', user('acme'), []],
    ['stripe', user('acme', 'w2', 'persona_reviewer'), ['shared']],
    ['stripe', user('acme', 'w2', 'reviewer'), ['shared']],
    ['stripe', user('acme', 'w1', 'persona_reviewer'), []],
    ['stripe', user('acme', null, 'persona_reviewer'), []],
    ['stripe', user('acme', 'w2', 'persona_other'), []],
    ['stripe', user('acme', 'w2'), []],
    ['__proto__:x', user(null), []],
  ])('%s for %o: %o', (secret, who, vaults) => {
    expect(access.vaultsFor(secret, who)).toEqual(vaults);
  });

  test('are listed for those who could use something in them', () => {
    const listed = (tenant: string | null, workspaces?: readonly string[]) =>
      ['own', 'shared', 'closed', 'untenanted'].filter((vault) => access.listed(vault, tenant, workspaces));
    expect(listed(null)).toEqual(['own', 'shared', 'untenanted']);
    expect(listed('acme')).toEqual(['shared']);
    expect(listed('other')).toEqual(['shared']);
    const narrow = createVaultAccess([{ name: 'v', access: [{ tenants: ['acme'], workspaces: ['w2'] }] }]);
    expect([narrow.listed('v', 'acme', ['w1']), narrow.listed('v', 'acme', ['w1', 'w2'])]).toEqual([false, true]);
    expect(narrow.listed('v', 'other', undefined)).toBe(false);
  });

  test('without a policy a tenant gets nothing', () => {
    expect(WITHOUT_TENANT.vaultsFor('x', user('acme'))).toEqual([]);
    expect(WITHOUT_TENANT.vaultsFor('x', user(null))).not.toEqual([]);
  });
});

test('a value is handed out only from a vault that is open to its user, and a refusal tells nothing', async () => {
  const vaults = [
    { name: 'own', provider: 'env' as const, prefix: 'OWN_' },
    { name: 'shared', provider: 'env' as const, prefix: 'SHARED_', access: [{ tenants: ['acme'], secrets: ['both'] }] },
  ];
  const env = { OWN_both: 'of the installation', SHARED_both: 'of the tenant', OWN_mine: 'of the installation' };
  const secret = createSecrets({ vaults, env, learn: createRedactor().learn });
  expect(await secret('both')).toBe('of the installation');
  expect(await secret('both', user(null))).toBe('of the installation');
  // A bare name is not looked for where its user may not look.
  expect(await secret('both', user('acme'))).toBe('of the tenant');
  const refusal = async (name: string) =>
    (await secret(name, user('acme')).catch((cause) => cause)).message.replaceAll(name, 'X');
  expect(await refusal('mine')).toBe(await refusal('absent'));
  expect(await refusal('own:both')).toBe(await refusal('absent'));
});
