/** What is said about a `tollbridge.yaml` in the working directory that does not count, or not as it is now. */
import type { Config } from '../config.ts';
import type { CommonOptions } from './context.ts';
import { us } from './our-command.ts';
import { brief } from './plain.ts';

/** One line, or nothing where there is nothing to say. */
export function projectNotice({ project }: Pick<Config, 'project'>, { config }: CommonOptions): string | undefined {
  if (!project) return undefined;
  const path = brief(project.path, 400);
  switch (project.state) {
    case 'absent':
    case 'trusted':
      return undefined;
    case 'untrusted':
    case 'declined':
      // Where a person named the configuration, no other was expected.
      if (config || process.env.TOLLBRIDGE_CONFIG) return undefined;
      if (project.problem) return `${path} was not read: ${project.problem}`;
      return `${path} is not trusted and was not read; to look at it and trust it: ${us()} trust`;
    case 'changed':
      return `${path} changed since you trusted it and was not read; the rules you trusted stay in force; to look at it and trust it: ${us()} trust`;
    case 'gone':
      return `${path} is gone; the rules you trusted stay in force until: ${us()} trust --remove`;
  }
}
