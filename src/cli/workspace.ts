/** Somewhere to work: whoever comes needs a workspace, and nobody should have to know that. */
import type { Actor } from '../model/actions.ts';
import type { Bridge } from '../ports.ts';

export async function haveWorkspace(bridge: Bridge, keeper: Actor): Promise<void> {
  const any = await bridge.list(keeper, { object: 'workspace', limit: 1 });
  if (any.data.length > 0) return;
  const body = { name: 'default', root: 'tollbridge://default' };
  await bridge.submit({
    kind: 'resource.create',
    actor: keeper,
    body: { object: 'workspace', id: 'workspace_default', body },
  });
}
