/**
 * A session needs a workspace; a client that names none gets the default one, which is created when there is no other.
 */
import type { Actor } from '../model/actions.ts';
import { asFault } from '../model/faults.ts';
import type { Bridge } from '../ports/index.ts';

export async function haveWorkspace(bridge: Bridge, actor: Actor): Promise<void> {
  const any = await bridge.list(actor, { object: 'workspace', limit: 1 });
  if (any.data.length > 0) return;
  const body = { name: 'default', root: 'tollbridge://default' };
  try {
    await bridge.submit({
      kind: 'resource.create',
      actor,
      body: { object: 'workspace', id: 'workspace_default', body },
    });
  } catch (thrown) {
    // Another process on the same log was first.
    if (asFault(thrown).kind !== 'conflict') throw thrown;
  }
}
