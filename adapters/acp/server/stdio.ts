/** The door over two line streams, for a command that is an editor's agent, whichever agent does the work behind it. */
import type { Readable, Writable } from 'node:stream';
import type { Actor, Bridge, Logger } from '../../../src/index.ts';
import { lineWriter, readLines } from '../../../src/transport/ndjson/ndjson.ts';
import { type AcpConfig, settingsOf } from '../config.ts';
import { createConnection } from './connection.ts';

export interface ServeOptions {
  readonly bridge: Bridge;
  /** The user who started the process; stdio has no other client. */
  readonly actor: Actor;
  readonly input: Readable;
  /** Only protocol messages are written here. */
  readonly output: Writable;
  readonly log: Logger;
  readonly config?: AcpConfig;
  /** Ends the connection, as the end of the input does. */
  readonly signal?: AbortSignal;
}

/** Runs until the input ends. Running work is canceled then, because its client is gone. */
export async function serveAcp({
  bridge,
  actor,
  input,
  output,
  log,
  config = {},
  signal,
}: ServeOptions): Promise<void> {
  const settings = settingsOf(config);
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
