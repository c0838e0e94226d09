/** `tollbridge serve`: every door, one log. Prints where it listens, where the log is, and how to answer approvals. */
import type { Config, ConfigRequest } from '../../../runtime/config/config.ts';
import { superviseIn } from '../../../transport/process/supervision.ts';
import { type CommonOptions, configFrom, logAt, quietConfigFrom, requireUsable } from '../../context.ts';
import { calledAgain } from '../../own-name.ts';
import { portOf } from '../../port.ts';
import { missingPrograms } from '../../programs.ts';
import { stopRequested } from '../../stop-signals.ts';
import { refuseExpiredKeys } from './expired-keys.ts';

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
  // Registered before the output, so that a stop sent right after it is not missed.
  const stop = stopRequested();
  const endSupervision = superviseIn(config.dataDir);
  const { startGateway } = await import('../../../runtime/gateway.ts');
  const gateway = await startGateway(config, options).catch((cause) => {
    stop.letGo();
    endSupervision();
    throw cause;
  });
  const { waiting, recovered } = gateway;
  const asks = waiting === 0 ? 'none pending' : `${waiting} pending`;
  const taken = recovered.resumed + recovered.started;
  const link = await gateway.consoleLink?.();
  process.stdout.write(
    options.json
      ? `${JSON.stringify({ object: 'gateway', url: gateway.url, token: gateway.token ?? null, console: link ?? null, config: config.file ?? null, project: projectOf(config), data: config.dataDir, waiting, resumed: taken })}\n`
      : [
          `tollbridge listens on ${gateway.url}  (${gateway.token ? `token ${gateway.token}` : 'API keys and OAuth2 tokens only'})`,
          link ? `Console: ${link}  (signs in once)` : `Console: ${gateway.url}/  (sign in with an API key)`,
          ...configLine(config),
          `Log: ${logAt(config)}${taken > 0 ? `; resumed ${taken} ${taken === 1 ? 'task' : 'tasks'}` : ''}`,
          `Approvals: ${calledAgain(options)} approvals  (${asks})`,
          '',
        ].join('\n'),
  );
  for (const { at, program } of await missingPrograms(config)) {
    process.stderr.write(
      `tollbridge: ${at}: command ${program} not found\n  fix: install it, or correct ${at} in ${config.file}; saving is enough\n`,
    );
  }
  await stop.requested;
  if (!options.json) process.stdout.write('\nstopping: running work is ended, approvals stay pending\n');
  await gateway.close();
  endSupervision();
}

/**
 * A person at the terminal is asked once whether the file in this directory counts; otherwise a line says that it does
 * not.
 */
async function trustedConfig(options: ServeOptions, more: Partial<ConfigRequest>): Promise<Config> {
  const { project } = await quietConfigFrom(options, more);
  const open = project && (project.state === 'untrusted' || project.state === 'changed') && !project.problem;
  if (open && !options.config && process.stdin.isTTY) {
    const { askForTrust } = await import('../rules/trust.ts');
    await askForTrust(project.path);
  }
  return await configFrom(options, more);
}

/** The files that were read; empty when there were none. */
function configLine(config: Config): readonly string[] {
  const took = [
    ...(config.file ? [config.file] : []),
    ...(projectOf(config) ? [`trusted rules in ${config.project?.path}`] : []),
  ];
  return took.length > 0 ? [`Configuration: ${took.join(', ')}`] : [];
}

/** The file in the working directory, where its rules count. */
function projectOf({ project }: Config): string | null {
  return project && project.files.length > 0 ? project.path : null;
}
