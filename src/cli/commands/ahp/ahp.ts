/**
 * `tollbridge ahp --stdio | --socket <path>`: a harness for one agent, or for those that may open a socket. It shares
 * the log with other processes on the same data directory, so its questions are answered with `tollbridge approve`, or
 * at any door of a running gateway. Harnesses the configuration names decide here too. Nothing but the protocol goes to
 * standard output.
 */
import { settingsOf } from '../../../../adapters/ahp/config.ts';
import { LOCAL_AGENT, serveUnix } from '../../../../adapters/ahp/server/door.ts';
import { createHarness, type Harness } from '../../../../adapters/ahp/server/harness.ts';
import { serveLines } from '../../../../adapters/ahp/server/streams.ts';
import { systemClock } from '../../../core/clock.ts';
import { Fault } from '../../../model/faults.ts';
import type { Logger } from '../../../ports/index.ts';
import { SERVING_ROOM } from '../../../runtime/assemble.ts';
import { createRuntime, createSurroundings } from '../../../runtime/create-runtime.ts';
import { createLogger } from '../../../runtime/logger.ts';
import { superviseIn } from '../../../transport/process/supervision.ts';
import { type CommonOptions, configFrom, requireUsable } from '../../context.ts';
import { stopRequested, untilInputEnds } from '../../stop-signals.ts';

export interface AhpOptions extends CommonOptions {
  readonly stdio?: boolean;
  readonly socket?: string;
}

export async function ahp(options: AhpOptions): Promise<void> {
  if (Boolean(options.stdio) === Boolean(options.socket)) {
    throw new Fault('invalid_request', 'say where the agent is: either --stdio or --socket <path>');
  }
  const config = await configFrom(options);
  await requireUsable(config.dataDir);
  const runtime = await createRuntime(config, {
    ...createSurroundings(createLogger),
    name: 'ahp',
    mounts: 'harnesses',
    roomBytes: SERVING_ROOM,
    settings: { recoversOrphans: false },
    prepare: () => ({}),
  });
  const { logger: log, ids } = runtime;
  const settings = settingsOf(await runtime.section('ahp'));
  // Over standard streams the agent starts its harness itself.
  const endSupervision = superviseIn(config.dataDir, { parentIsAgent: options.stdio === true });
  const harness = createHarness(runtime.bridge, settings, { log, ids, clock: systemClock });
  try {
    if (options.socket) await untilStopped(options.socket, harness, settings, log);
    else {
      const actor = LOCAL_AGENT;
      const streams = { input: process.stdin, output: process.stdout };
      await untilInputEnds(process.stdin, () =>
        serveLines(harness, streams, { actor, log, limit: settings.lineLimit }),
      );
      await harness.left(actor);
    }
  } finally {
    await harness.close();
    await runtime.close();
    endSupervision();
  }
}

async function untilStopped(path: string, harness: Harness, settings: Parameters<typeof serveUnix>[2], log: Logger) {
  const stop = stopRequested();
  try {
    const listening = await serveUnix(path, harness, settings, { log });
    process.stderr.write(`tollbridge answers agents at ${path}\n`);
    await stop.requested;
    await listening.close();
  } finally {
    stop.letGo();
  }
}
