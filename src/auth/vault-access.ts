/**
 * The access policy of the configured vaults. A vault without grants is open to work without a tenant, which is all
 * work in an installation that has none; a tenant gets what a grant names, and nothing by default.
 */
import type { SecretUser, VaultAccess } from '../ports/index.ts';

/**
 * Everything a grant names has to match; an absent member matches anything, except for the tenant, which has to be
 * named.
 */
export interface VaultGrant {
  /** Tenants by name, `*` for each of them and for work without one. Absent: work without a tenant. */
  readonly tenants?: readonly string[];
  readonly workspaces?: readonly string[];
  /** Personas by their name in the configuration, or by id. */
  readonly personas?: readonly string[];
  /** Secrets by name, with `*` for any part of it. */
  readonly secrets?: readonly string[];
}

export interface GrantedVault {
  readonly name: string;
  readonly access?: readonly VaultGrant[] | undefined;
}

const OWN_WORK: readonly VaultGrant[] = [{}];

export function createVaultAccess(vaults: readonly GrantedVault[]): VaultAccess {
  const grants = new Map(vaults.map(({ name, access }) => [name, access ?? OWN_WORK]));

  function some(vault: string, fits: (grant: VaultGrant) => boolean): boolean {
    return (grants.get(vault) ?? []).some(fits);
  }

  return {
    vaultsFor(secret, user) {
      const at = secret.indexOf(':');
      const name = secret.slice(at + 1);
      const asked = at < 0 ? [...grants.keys()] : [secret.slice(0, at)];
      return asked.filter((vault) => some(vault, (grant) => fitsUser(grant, user) && fitsName(grant.secrets, name)));
    },
    listed: (vault, tenantId, workspaces) =>
      some(
        vault,
        (grant) =>
          fitsTenant(grant, tenantId) &&
          (!grant.workspaces || !workspaces || grant.workspaces.some((id) => workspaces.includes(id))),
      ),
    open: (vault, user) => some(vault, (grant) => fitsUser(grant, user)),
  };
}

function fitsTenant({ tenants }: VaultGrant, tenantId: string | null): boolean {
  if (tenants?.includes('*')) return true;
  return tenantId === null ? tenants === undefined : (tenants?.includes(tenantId) ?? false);
}

function fitsUser(grant: VaultGrant, { tenant_id, workspace_id, persona_id }: SecretUser): boolean {
  return (
    fitsTenant(grant, tenant_id) &&
    (!grant.workspaces || (workspace_id !== null && grant.workspaces.includes(workspace_id))) &&
    (!grant.personas || (persona_id !== null && grant.personas.some((name) => isPersona(name, persona_id))))
  );
}

function isPersona(name: string, id: string): boolean {
  return id === name || id === `persona_${name}`;
}

function fitsName(patterns: readonly string[] | undefined, name: string): boolean {
  return !patterns || patterns.some((pattern) => matches(pattern, name));
}

/** Matches piece by piece, without a regular expression that could backtrack. */
function matches(pattern: string, name: string): boolean {
  const [first = '', ...rest] = pattern.split('*');
  if (rest.length === 0) return pattern === name;
  const last = rest.pop() as string;
  if (!name.startsWith(first) || name.length < first.length + last.length || !name.endsWith(last)) return false;
  let at = first.length;
  for (const piece of rest) {
    const found = name.indexOf(piece, at);
    if (found < 0 || found + piece.length > name.length - last.length) return false;
    at = found + piece.length;
  }
  return true;
}
