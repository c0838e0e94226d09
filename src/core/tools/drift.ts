/** An approval of a tool covers the tool as it was defined when people were asked. */
import type { Action } from '../../model/actions.ts';
import type { Tools } from './catalog.ts';

/** Why the tool that would run is not the approved one; undefined when it is. */
export async function driftOf(
  tools: Pick<Tools, 'find'>,
  action: Action,
  mounted: boolean,
): Promise<string | undefined> {
  if (!action.definition || !action.tool || action.evidence !== 'held') return undefined;
  const found = await tools.find(action.tool, action.server, action.session_id);
  // Not a mounted tool: the caller supplied the effect itself.
  if (!found && !mounted) return undefined;
  if (!found) return `${action.tool} is no longer there to do what was approved`;
  return found.definition === action.definition
    ? undefined
    : `the definition of ${action.tool} changed after it was approved; ask again`;
}
