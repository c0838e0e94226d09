/**
 * The notice about a `tollbridge.yaml` in the working directory that does not count, or changed since it was trusted.
 */
import type { Config } from '../../runtime/config/config.ts';
import type { CommonOptions } from '../context.ts';
import { us } from '../editors/our-command.ts';
import { brief } from './terminal-text.ts';

/** One line, or undefined. */
export function projectNotice({ project }: Pick<Config, 'project'>, { config }: CommonOptions): string | undefined {
  if (!project) return undefined;
  const path = brief(project.path, 400);
  switch (project.state) {
    case 'absent':
    case 'trusted':
      return undefined;
    case 'untrusted':
    case 'declined':
      // A user who named the configuration expects no other file.
      if (config || process.env.TOLLBRIDGE_CONFIG) return undefined;
      if (project.problem) return `${path} was not read: ${project.problem}`;
      return `${path} is not trusted and was not read; to look at it and trust it: ${us()} trust`;
    case 'changed':
      return `${path} changed since you trusted it and was not read; the rules you trusted stay in force; to look at it and trust it: ${us()} trust`;
    case 'gone':
      return `${path} is gone; the rules you trusted stay in force until: ${us()} trust --remove`;
  }
}
