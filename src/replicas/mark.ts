/**
 * How a name says which replica holds the thing it names: it ends in `~` and the replica's id. So nothing has to be looked up to find
 * the holder, and no row is written for each session. A mark is a hint, not a credential: a forged one leads to a replica that does not
 * know the name.
 */

const MARK = /~([0-9A-HJKMNP-TV-Z]{26})$/;
const PREFIX = 'replica_';

export function markOf(replicaId: string): string {
  return `~${replicaId.slice(PREFIX.length)}`;
}

/** The id of the replica that made this name. */
export function holderOf(name: string): string | undefined {
  const found = MARK.exec(name)?.[1];
  return found && `${PREFIX}${found}`;
}
