/** The door over two streams of lines: what a command needs to be an editor's agent, whoever does the work behind it. */
import type { Readable, Writable } from 'node:stream';
import type { Actor, Bridge, Logger } from '../../src/index.ts';
import { lineWriter, readLines } from '../../src/wire/ndjson.ts';
import { type AcpConfig, settingsOf } from './config.ts';
import { createConnection } from './connection.ts';

export interface ServeOptions {
  readonly bridge: Bridge;
  /** Whoever started us; there is nobody else at the other end. */
  readonly actor: Actor;
  readonly input: Readable;
  /** Nothing but the protocol is written here. */
  readonly output: Writable;
  readonly log: Logger;
  readonly config?: AcpConfig;
  /** Ends it as the end of the input does. */
  readonly signal?: AbortSignal;
}

/** Until the input ends. Work that goes on is stopped then: whoever gave it is gone. */
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
    for await (const line of readLines(input, { limit: settings.lineLimit, skipped })) await connection.hear(line);
  } finally {
    signal?.removeEventListener('abort', stop);
    await connection.close(settings.onDisconnect ?? 'cancel');
  }
}
