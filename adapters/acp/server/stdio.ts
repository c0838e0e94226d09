/** The door over two line streams, for a command that is an editor's agent, whichever agent does the work behind it. */
import { type Actor, asText, type Bridge, type Deps, isTerminal, type StreamClient } from '../../../src/index.ts';
import { lineWriter, readLines } from '../../../src/transport/ndjson/ndjson.ts';
import type { AcpSettings } from '../config.ts';
import { createConnection } from './connection.ts';

/**
 * Runs until the input ends. Running work is canceled then, because its client is gone; where the settings let it continue, this
 * waits for its end, because the process that does the work ends afterwards. A signal ends the wait, and the work with it.
 */
export async function serveStreams(
  settings: AcpSettings,
  { log }: Pick<Deps, 'log'>,
  bridge: Bridge,
  { actor, input, output, signal }: StreamClient,
): Promise<void> {
  const editor = { ...actor, door: 'acp' };
  const connection = createConnection({
    bridge,
    actor: editor,
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
    const begun = connection.unfinished();
    const open = settings.onDisconnect ?? 'cancel';
    await connection.close(open);
    if (open === 'continue') await Promise.all(begun.map((task) => ended(bridge, editor, task, signal)));
  }
}

async function ended(bridge: Bridge, actor: Actor, id: string, signal = new AbortController().signal): Promise<void> {
  for await (const { event, payload } of bridge.follow(actor, { stream: { of: 'task', id } }, signal))
    if (event.startsWith('task.') && isTerminal(asText(payload.to))) return;
}
