/**
 * `tollbridge ahp --stdio | --socket <path>`: a harness for one agent, or for those that may open a socket. It shares
 * the log with other processes on the same data directory, so its questions are answered with `tollbridge approve`, or
 * at any door of a running gateway. Harnesses the configuration names decide here too. Nothing but the protocol goes to
 * standard output.
 */
import { ahp as adapter } from '../../../../adapters/ahp/index.ts';
import { Fault } from '../../../model/faults.ts';
import type { Closable } from '../../../ports/index.ts';
import { createRuntime, createSurroundings } from '../../../runtime/create-runtime.ts';
import { createLogger } from '../../../runtime/logger.ts';
import { superviseIn } from '../../../transport/process/supervision.ts';
import { type CommonOptions, configFrom, localAgent, requireUsable } from '../../context.ts';
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
    serving: true,
    settings: { recoversOrphans: false },
    prepare: () => ({}),
  });
  const { bridge, deps } = runtime;
  const section = await runtime.section('ahp');
  const { socket } = options;
  const door = adapter.parts.door.open({ ...section, ...(socket && { socket }) }, { ...deps, name: 'ahp' });
  // Over standard streams the agent starts its harness itself.
  const endSupervision = superviseIn(config.dataDir, { parentIsAgent: options.stdio === true });
  try {
    if (socket) await untilStopped(socket, () => door.open(bridge));
    else {
      const client = { input: process.stdin, output: process.stdout, actor: localAgent('ahp') };
      await untilInputEnds(process.stdin, async () => await door.serve?.(bridge, client));
    }
  } finally {
    await runtime.close();
    endSupervision();
  }
}

/** The port of this runtime does not listen, so that the door is reached by its socket alone. */
async function untilStopped(path: string, open: () => Promise<Closable>): Promise<void> {
  const stop = stopRequested();
  try {
    const door = await open();
    process.stderr.write(`tollbridge answers agents at ${path}\n`);
    await stop.requested;
    await door.close();
  } finally {
    stop.letGo();
  }
}
