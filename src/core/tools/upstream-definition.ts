/**
 * A tool that is shown under another name or description keeps its server's own beside it. Calls, pins and acceptance are about
 * the server's own definition; rules, lists and callers use the one that is shown.
 */
import type { Skill } from '../../model/resources.ts';

export interface OwnDefinition {
  readonly name: string;
  readonly description: string;
}

export function ownDefinition({
  name,
  description,
  metadata,
}: Pick<Skill, 'name' | 'description' | 'metadata'>): OwnDefinition {
  return (metadata.upstream as OwnDefinition | undefined) ?? { name, description };
}

/** Whether it is shown otherwise than its server defines it. */
export function isReworded({ metadata }: Pick<Skill, 'metadata'>): boolean {
  return metadata.upstream !== undefined;
}

export function reworded<T extends Skill>(skill: T, shown: Partial<OwnDefinition>): T {
  const { name, description } = skill;
  const upstream = { name, description };
  return { ...skill, ...shown, metadata: { ...skill.metadata, upstream } };
}
