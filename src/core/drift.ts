/** A yes to a tool is a yes to the tool as it was defined when people were asked. */
import type { Action } from '../model/actions.ts';
import type { Tools } from './tools.ts';

/** Why the tool that was approved is not the one that would run; undefined when it is. */
export async function driftOf(
  tools: Pick<Tools, 'find'>,
  action: Action,
  mounted: boolean,
): Promise<string | undefined> {
  if (!action.definition || !action.tool || action.evidence !== 'held') return undefined;
  const found = await tools.find(action.tool, action.server, action.session_id);
  // Not one of ours: the caller brought the effect itself.
  if (!found && !mounted) return undefined;
  if (!found) return `${action.tool} is no longer there to do what was approved`;
  return found.definition === action.definition
    ? undefined
    : `the definition of ${action.tool} changed after it was approved; ask again`;
}
