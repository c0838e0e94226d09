/**
 * Credentials that belong to one caller at an outside server. A caller without any gets a fault that says what is missing: neither
 * another caller's credentials nor common ones are used instead.
 */
import { createHash } from 'node:crypto';
import type { Actor } from '../../model/actions.ts';
import { asFault, Fault } from '../../model/faults.ts';
import { NonEmpty } from '../../model/schema.ts';
import { type Static, Type } from '../../model/type.ts';
import { own } from '../../model/values/own.ts';
import type { Deps } from '../../ports/index.ts';

/** The principal whose credentials are used. An agent works with those of the principal that gave it the work. */
export interface CredentialOwner {
  readonly id: string;
  readonly tenant_id?: string;
}

export function callerOf({ id, tenant_id, on_behalf_of }: Actor): CredentialOwner {
  return { id: on_behalf_of ?? id, ...(tenant_id !== undefined && { tenant_id }) };
}

/** A caller without credentials, or with credentials that are no longer accepted. The message says what to do. */
export function withoutCredentials(why: string): Fault {
  return new Fault('permission_denied', why);
}

/**
 * The caller in the name of a secret. Two callers never have the same name, because one would be given the secret of the other: an id
 * that a secret's name cannot hold as it is, and every id in a tenant, is replaced by its hash.
 */
export function callerName({ id, tenant_id }: CredentialOwner): string {
  if (tenant_id === undefined && /^[A-Za-z0-9_-]{1,64}$/.test(id)) return id;
  return `h.${createHash('sha256')
    .update(JSON.stringify([tenant_id ?? null, id]))
    .digest('hex')
    .slice(0, 40)}`;
}

const PLACEHOLDER = '{caller}';

export const CallerTokens = Type.Union([NonEmpty, Type.Record(Type.String(), NonEmpty)], {
  description:
    'The name of a secret for each caller, which is sent as a bearer token: a name with {caller} in it, or names by principal; "*" is for all other principals, with {caller} in it.',
});
export type CallerTokens = Static<typeof CallerTokens>;

/** Throws for a section that would give two callers one secret by mistake. */
export function requireDistinctTokens(tokens: CallerTokens): void {
  const shared = typeof tokens === 'string' ? tokens : (own(tokens, '*') ?? PLACEHOLDER);
  if (shared.includes(PLACEHOLDER)) return;
  const why = `${shared} is one secret for all callers: put ${PLACEHOLDER} into its name, or name it with token`;
  throw new Fault('invalid_request', why, { param: '/caller_tokens' });
}

/** The secret of this caller. */
export async function callerToken(
  server: string,
  tokens: CallerTokens,
  caller: CredentialOwner,
  secret: Deps['secret'],
): Promise<string> {
  const { id, tenant_id } = caller;
  const named =
    typeof tokens === 'string' ? undefined : own(tokens, tenant_id === undefined ? id : `${tenant_id}/${id}`);
  const template = typeof tokens === 'string' ? tokens : own(tokens, '*');
  const name = named ?? template?.replaceAll(PLACEHOLDER, callerName(caller));
  if (name === undefined) {
    throw withoutCredentials(`${server} has no credentials of ${id}: its operator names them under caller_tokens`);
  }
  return await secret(name).catch((cause) => {
    if (asFault(cause).kind !== 'not_found') throw cause;
    throw withoutCredentials(
      `${server} has no credentials of ${id}: its operator stores them with: tollbridge vault set ${name}`,
    );
  });
}
