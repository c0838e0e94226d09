/** `tollbridge serve`: every door, one log. Prints where it listens, where the log is, and how to answer approvals. */
import { availableParallelism } from 'node:os';
import type { Config, ConfigRequest } from '../../../runtime/config/config.ts';
import type { Gateway } from '../../../runtime/gateway.ts';
import { superviseIn } from '../../../transport/process/supervision.ts';
import { type CommonOptions, configFrom, logAt, quietConfigFrom, requireUsable } from '../../context.ts';
import { trouble } from '../../output/error-output.ts';
import { calledAgain } from '../../own-name.ts';
import { portOf } from '../../port.ts';
import { missingPrograms } from '../../programs.ts';
import { stopRequested } from '../../stop-signals.ts';
import { refuseExpiredKeys } from './expired-keys.ts';
import {
  isWorker,
  leaveParent,
  runWorkers,
  stopWithParent,
  tellReady,
  type WorkerReady,
  workerOrders,
} from './workers.ts';

export interface ServeOptions extends CommonOptions {
  readonly host?: string;
  readonly port?: string;
  readonly journal?: string;
  readonly json?: boolean;
  readonly workers?: string;
}

export async function serve(options: ServeOptions): Promise<number | undefined> {
  const workers = workersOf(options);
  if (isWorker()) return await serveAsWorker(options);
  const config = await trustedConfig(options, requested(options));
  await requireUsable(config.dataDir);
  await refuseExpiredKeys(config);
  if (workers > 1) return await serveWithWorkers(options, config, workers);
  // Registered before the output, so that a stop sent right after it is not missed.
  const stop = stopRequested();
  const endSupervision = superviseIn(config.dataDir);
  const { startGateway } = await import('../../../runtime/gateway.ts');
  const gateway = await startGateway(config, options).catch((cause) => {
    stop.letGo();
    endSupervision();
    throw cause;
  });
  announce(options, config, await stateOf(gateway, true));
  await warnOfPrograms(config);
  await stop.requested;
  if (!options.json) process.stdout.write(STOPPING);
  await gateway.close();
  endSupervision();
  return undefined;
}

const STOPPING = '\nstopping: running work is ended, approvals stay pending\n';

async function serveWithWorkers(options: ServeOptions, config: Config, workers: number): Promise<number> {
  const code = await runWorkers(workers, (first) => {
    announce(options, config, first, workers);
    void warnOfPrograms(config);
  });
  if (!options.json && code === 0) process.stdout.write(STOPPING);
  return code;
}

/** Says nothing itself: the process that started it speaks for all workers. */
async function serveAsWorker(options: ServeOptions): Promise<undefined> {
  try {
    await workUntilStopped(options);
  } finally {
    // Also where it could not start: the channel to its parent would keep it alive.
    leaveParent();
  }
  return undefined;
}

async function workUntilStopped(options: ServeOptions): Promise<void> {
  stopWithParent();
  const orders = await workerOrders();
  const config = await quietConfigFrom(options, requested(options));
  const stop = stopRequested();
  const endSupervision = superviseIn(config.dataDir);
  const { startGateway } = await import('../../../runtime/gateway.ts');
  const gateway = await startGateway(config, { ...options, token: orders.token }).catch((cause) => {
    stop.letGo();
    endSupervision();
    throw cause;
  });
  tellReady(await stateOf(gateway, orders.first));
  await stop.requested;
  await gateway.close();
  endSupervision();
}

function workersOf({ workers = '1' }: ServeOptions): number {
  const count = workers === 'auto' ? availableParallelism() : Number(workers);
  if (Number.isInteger(count) && count >= 1 && count <= MOST_WORKERS) return count;
  throw trouble(
    'invalid_request',
    `${workers} is not a number of workers`,
    `use a number from 1 to ${MOST_WORKERS}, or auto for one per processor`,
  );
}

const MOST_WORKERS = 64;

function requested({ host, port }: ServeOptions): Partial<ConfigRequest> {
  return { ...(host && { host }), ...(port && { port: portOf(port) }) };
}

async function stateOf(gateway: Gateway, links: boolean): Promise<WorkerReady> {
  const { url, token = null, waiting, recovered, consoleLink } = gateway;
  const resumed = recovered.resumed + recovered.started;
  return { url, token, waiting, resumed, console: (links && (await consoleLink?.())) || null };
}

function announce(options: ServeOptions, config: Config, state: WorkerReady, workers = 1): void {
  const { url, token, console: link, waiting, resumed } = state;
  const asks = waiting === 0 ? 'none pending' : `${waiting} pending`;
  const several = workers > 1;
  process.stdout.write(
    options.json
      ? `${JSON.stringify({ object: 'gateway', url, token, console: link, config: config.file ?? null, project: projectOf(config), data: config.dataDir, waiting, resumed, ...(several && { workers }) })}\n`
      : [
          `tollbridge listens on ${url}  (${token ? `token ${token}` : 'API keys and OAuth2 tokens only'})`,
          link ? `Console: ${link}  (signs in once)` : `Console: ${url}/  (sign in with an API key)`,
          ...configLine(config),
          `Log: ${logAt(config)}${resumed > 0 ? `; resumed ${resumed} ${resumed === 1 ? 'task' : 'tasks'}` : ''}`,
          ...(several ? [`Workers: ${workers} processes share the port and the log`] : []),
          `Approvals: ${calledAgain(options)} approvals  (${asks})`,
          '',
        ].join('\n'),
  );
}

async function warnOfPrograms(config: Config): Promise<void> {
  for (const { at, program } of await missingPrograms(config)) {
    process.stderr.write(
      `tollbridge: ${at}: command ${program} not found\n  fix: install it, or correct ${at} in ${config.file}; saving is enough\n`,
    );
  }
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
