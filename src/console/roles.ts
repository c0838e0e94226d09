/** The roles a person sees in the console. They only name what the scopes allow; every route checks the scopes themselves. */
import type { Actor } from '../model/actions.ts';
import { asFault, Fault } from '../model/faults.ts';

export type Role = 'viewer' | 'approver' | 'admin';

/** The scope that changes rules, pins and keys' visibility. */
export const ADMIN = 'configuration:write';

export function roleOf(actor: Pick<Actor, 'scopes'>): Role {
  if (holds(actor, ADMIN)) return 'admin';
  return holds(actor, 'approvals:write') ? 'approver' : 'viewer';
}

export function holds({ scopes }: Pick<Actor, 'scopes'>, scope: string): boolean {
  return ['*', scope, `${scope.split(':')[0]}:*`].some((word) => scopes.includes(word));
}

export function nothingHere(): Fault {
  return new Fault('not_found', 'there is nothing of this kind here');
}

/** What a caller may not use is not there for it. */
export function requireAdmin(actor: Pick<Actor, 'scopes'>): void {
  if (!holds(actor, ADMIN)) throw nothingHere();
}

/** A part that the caller's scopes do not cover is left out, as if there were none. */
export function nothingIfHidden(thrown: unknown): [] {
  if (asFault(thrown).kind === 'permission_denied') return [];
  throw thrown;
}

/** The same for one thing: what is hidden is absent. */
export function absentIfHidden(thrown: unknown): null {
  if (['not_found', 'permission_denied'].includes(asFault(thrown).kind)) return null;
  throw thrown;
}
