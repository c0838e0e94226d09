/** A server's own list of tools as its callers see it: without the hidden ones, and with the names and descriptions they are exposed under. */
import { isObject, isReworded, type Json, ownDefinition, type Skill } from '../../../src/index.ts';

/** The same array when nothing is hidden and nothing reworded. */
export function shownTools(tools: readonly Json[], visible: readonly Skill[]): readonly Json[] {
  const known = new Map(visible.map((skill) => [ownDefinition(skill).name, skill]));
  const shown = tools.flatMap((tool): Json[] => {
    const skill = isObject(tool) && typeof tool.name === 'string' ? known.get(tool.name) : undefined;
    if (!skill || !isObject(tool)) return [];
    return [isReworded(skill) ? { ...tool, name: skill.name, description: skill.description } : tool];
  });
  return shown.length === tools.length && shown.every((tool, at) => tool === tools.at(at)) ? tools : shown;
}
