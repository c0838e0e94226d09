/**
 * `tollbridge acp-agent`: an editor starts this as its agent, and the configured agent does the work, whatever protocol
 * it speaks. The section `doors.acp` applies, and the command line wins over it. It shares the log with other processes
 * on the same data directory, and opens no port and no door but the editor's own.
 * Nothing but the protocol goes to standard output.
 */
import { acp } from '../../../../adapters/acp/index.ts';
import { adapters } from '../../../../adapters/index.ts';
import { Fault } from '../../../model/faults.ts';
import type { TSchema } from '../../../model/type.ts';
import { own } from '../../../model/values/own.ts';
import { checkSection } from '../../../runtime/config/document.ts';
import { startGateway } from '../../../runtime/gateway.ts';
import { superviseIn } from '../../../transport/process/supervision.ts';
import { type CommonOptions, configFrom, localActor } from '../../context.ts';

export interface AcpAgentOptions extends CommonOptions {
  readonly agent?: string;
  readonly persona?: string;
  readonly journal?: string;
}

export async function acpAgent({ agent, persona, journal, ...common }: AcpAgentOptions): Promise<void> {
  // An editor that stops reading has gone; that ends the process in order instead of with an unhandled error.
  process.stdout.removeAllListeners('error');
  // Where the configured gateway listens, and who may reach it there, is not about this process.
  const config = await configFrom(common, { host: '127.0.0.1', port: 0 });
  const value = own(config.doors, acp.name);
  if (value === false) {
    throw new Fault(
      'invalid_request',
      'doors.acp is false in the configuration: take that line out to serve an editor',
    );
  }
  const { configSchema } = acp.parts.door;
  const section = checkSection(configSchema as TSchema, value ?? {}, config.where, ['doors', acp.name]) as Parameters<
    typeof acp.parts.door.open
  >[0];
  const doors = Object.fromEntries(adapters.flatMap(({ name, parts }) => (parts.door ? [[name, false as const]] : [])));
  const gateway = await startGateway(
    { ...config, doors },
    { recoversOrphans: false, listens: false, ...(journal && { journal }) },
  );
  const endSupervision = superviseIn(config.dataDir);
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => stop.abort());
  try {
    const door = acp.parts.door.open(
      { ...section, ...(agent && { agent }), ...(persona && { persona }) },
      { ...gateway.deps, name: 'acp' },
    );
    await door.serve?.(gateway.core.bridge, {
      actor: localActor(),
      input: process.stdin,
      output: process.stdout,
      signal: stop.signal,
    });
  } finally {
    await gateway.close();
    endSupervision();
  }
}
