/** The door over two line streams, for a command that is an editor's agent, whichever agent does the work behind it. */
import type { Bridge, Deps, StreamClient } from '../../../src/index.ts';
import { lineWriter, readLines } from '../../../src/transport/ndjson/ndjson.ts';
import type { AcpSettings } from '../config.ts';
import { createConnection } from './connection.ts';

/** Runs until the input ends. Running work is canceled then, because its client is gone. */
export async function serveStreams(
  settings: AcpSettings,
  { log }: Pick<Deps, 'log'>,
  bridge: Bridge,
  { actor, input, output, signal }: StreamClient,
): Promise<void> {
  const connection = createConnection({
    bridge,
    actor: { ...actor, door: 'acp' },
    settings,
    log,
    send: lineWriter(output),
  });
  const stop = () => input.destroy();
  if (signal?.aborted) stop();
  signal?.addEventListener('abort', stop, { once: true });
  output.once('close', stop);
  const skipped = (why: string) => log.warn({ why }, 'a line was skipped');
  try {
    for await (const line of readLines(input, { limit: settings.lineLimit, skipped })) await connection.receive(line);
  } finally {
    signal?.removeEventListener('abort', stop);
    await connection.close(settings.onDisconnect ?? 'cancel');
  }
}
