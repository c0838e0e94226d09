/** Checks Node, the configuration and the rules. */
import type { Config } from '../../runtime/config/config.ts';
import { inForce } from '../commands/rules/policy.ts';
import type { CommonOptions } from '../context.ts';
import { us } from '../editors/our-command.ts';
import { errorMessageOf } from '../output/error-output.ts';
import { projectNotice } from '../output/project-notice.ts';
import { counted } from '../output/terminal-text.ts';
import { missingPrograms } from '../programs.ts';
import { bad, type Finding, ok, warn } from './finding.ts';

/** As in `engines` of package.json. */
const OLDEST = [20, 19] as const;

export function lookAtNode(version: string): readonly Finding[] {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const enough = major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]);
  return [
    enough
      ? ok('node', `Node ${version}`)
      : bad('node', `Node ${version} is too old`, `install Node ${OLDEST.join('.')} or later`),
  ];
}

export async function lookAtConfig(
  read: () => Promise<Config>,
): Promise<{ readonly config?: Config; readonly finding: Finding }> {
  try {
    const config = await read();
    const [{ adapters }, { mountsOf }] = await Promise.all([
      import('../../../adapters/index.ts'),
      import('../../runtime/mounts/mounts.ts'),
    ]);
    mountsOf(config, adapters);
    return { config, finding: ok('config', config.file ? `${config.file} is fine` : 'no file, and none is needed') };
  } catch (thrown) {
    const { sentence, fix } = errorMessageOf(thrown);
    return { finding: bad('config', sentence, fix ?? 'put it right where the message points') };
  }
}

/** A file in the working directory counts once it is trusted; until then nothing of it is used. */
export function lookAtProjectFile({ project }: Config, options: CommonOptions): readonly Finding[] {
  if (!project || project.state === 'absent') return [];
  const { path, state, files } = project;
  if (state === 'trusted') return [ok('project', `${path} is trusted (${counted(files.length, 'file')} pinned)`)];
  const notice = projectNotice({ project }, options);
  if (!notice) return [];
  return [warn('project', notice, `${us()} trust shows it; ${us()} trust --list shows what is trusted`)];
}

export async function lookAtRules(config: Config): Promise<readonly Finding[]> {
  try {
    const { ruleCount, version } = await inForce(config);
    return [ok('rules', `${counted(ruleCount, 'rule')}, version ${version.slice(0, 19)}`)];
  } catch (thrown) {
    const { sentence, fix } = errorMessageOf(thrown);
    return [
      bad('rules', sentence, fix ?? 'put them right where the message points; "tollbridge policy check" checks again'),
    ];
  }
}

/** Programs that the configuration starts when they are needed. */
export async function lookAtPrograms(config: Config): Promise<readonly Finding[]> {
  return (await missingPrograms(config)).map(({ at, program }) =>
    bad('programs', `${at}: command ${program} not found`, `install it, or correct ${at} in ${config.file}`),
  );
}
