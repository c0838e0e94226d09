/** `tollbridge serve`: every door, one log. Says where it listens, where the log is, and how to answer approvals. */

import { superviseIn } from '../wire/supervision.ts';
import { type CommonOptions, configFrom, logAt, requireUsable } from './context.ts';
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
  const config = await configFrom(options, {
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
      ? `${JSON.stringify({ object: 'gateway', url: gateway.url, token: gateway.token ?? null, data: config.dataDir, waiting, resumed: taken })}\n`
      : [
          `tollbridge listens on ${gateway.url}  (${gateway.token ? `token ${gateway.token}` : 'API keys and OAuth2 tokens only'})`,
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
