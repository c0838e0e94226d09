/**
 * Which user may use which secret of which vault: declared in the configuration, checked by core and by the code that hands out
 * values.
 */

/** The user a secret is named or used for. Null: no tenant, no particular workspace, no persona. */
export interface SecretUser {
  readonly tenant_id: string | null;
  readonly workspace_id: string | null;
  readonly persona_id: string | null;
}

export interface VaultAccess {
  /**
   * The vaults that would hand this secret to this user, whether or not they contain it, so that a refusal does not reveal which
   * secrets exist. An empty list is a refusal. `main:github` names one vault, `github` matches all of them.
   */
  vaultsFor(secret: string, user: SecretUser): readonly string[];
  /** Whether a vault is open to any work of this tenant in these workspaces; undefined means all of its workspaces. */
  listed(vault: string, tenantId: string | null, workspaces: readonly string[] | undefined): boolean;
  /** Whether the vault holds any secret open to this user. */
  open(vault: string, user: SecretUser): boolean;
}
