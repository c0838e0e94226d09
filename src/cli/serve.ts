/** `tollbridge serve`: every door, one log. Says where it listens, where the log is, and how to answer approvals. */
import type { Config, Given } from '../config.ts';
import { superviseIn } from '../wire/supervision.ts';
import { type CommonOptions, configFrom, logAt, quietConfigFrom, requireUsable } from './context.ts';
import { calledAgain } from './own-name.ts';
import { portOf } from './port.ts';
import { missingPrograms } from './programs.ts';
import { stopRequested } from './stopping.ts';
import { refuseExpiredKeys } from './strangers.ts';

export interface ServeOptions extends CommonOptions {
  readonly host?: string;
  readonly port?: string;
  readonly journal?: string;
  readonly json?: boolean;
}

export async function serve(options: ServeOptions): Promise<void> {
  const config = await trustedConfig(options, {
    ...(options.host && { host: options.host }),
    ...(options.port && { port: portOf(options.port) }),
  });
  await requireUsable(config.dataDir);
  await refuseExpiredKeys(config);
  // Whoever wants us to end may say so as soon as we have said that we are there.
  const stop = stopRequested();
  superviseIn(config.dataDir);
  const { startGateway } = await import('../gateway.ts');
  const gateway = await startGateway(config, options).catch((cause) => {
    stop.letGo();
    throw cause;
  });
  const { waiting, recovered } = gateway;
  const asks = waiting === 0 ? 'none waits' : waiting === 1 ? '1 waits' : `${waiting} wait`;
  const taken = recovered.resumed + recovered.started;
  process.stdout.write(
    options.json
      ? `${JSON.stringify({ object: 'gateway', url: gateway.url, token: gateway.token ?? null, config: config.file ?? null, project: projectOf(config), data: config.dataDir, waiting, resumed: taken })}\n`
      : [
          `tollbridge listens on ${gateway.url}  (${gateway.token ? `token ${gateway.token}` : 'API keys and OAuth2 tokens only'})`,
          ...configLine(config),
          `the log is in ${logAt(config)}${taken > 0 ? `; ${taken} ${taken === 1 ? 'task goes' : 'tasks go'} on from where ${taken === 1 ? 'it was' : 'they were'}` : ''}`,
          `questions are shown, and answered, with: ${calledAgain(options)} approvals  (${asks})`,
          '',
        ].join('\n'),
  );
  for (const { at, program } of await missingPrograms(config)) {
    process.stderr.write(
      `tollbridge: ${at} starts ${program}, and there is no such command\n  fix: install it, or correct ${at} in ${config.file}; saving is enough\n`,
    );
  }
  await stop.requested;
  if (!options.json) process.stdout.write('\nstopping: what runs is brought to an end, what waits keeps waiting\n');
  await gateway.close();
}

/** A person at the terminal is asked once whether the file in this directory counts; anyone else reads in a line that it does not. */
async function trustedConfig(options: ServeOptions, more: Partial<Given>): Promise<Config> {
  const { project } = await quietConfigFrom(options, more);
  const open = project && (project.state === 'untrusted' || project.state === 'changed') && !project.problem;
  if (open && !options.config && process.stdin.isTTY) {
    const { offerTrust } = await import('./trust.ts');
    await offerTrust(project.path);
  }
  return await configFrom(options, more);
}

/** Which files it took; nothing where it took none. */
function configLine(config: Config): readonly string[] {
  const took = [
    ...(config.file ? [config.file] : []),
    ...(projectOf(config) ? [`the rules you trusted in ${config.project?.path}`] : []),
  ];
  return took.length > 0 ? [`configured by ${took.join(', and by ')}`] : [];
}

/** The file in the working directory, where its rules count. */
function projectOf({ project }: Config): string | null {
  return project && project.files.length > 0 ? project.path : null;
}
