/** One server as a child process, one frame per line. Lines that are not frames are skipped and logged. */
import { Fault, type Logger } from '../../../../src/index.ts';
import { forEachLine, lineWriter } from '../../../../src/transport/ndjson/ndjson.ts';
import { type Child, startChild } from '../../../../src/transport/process/child.ts';
import { framesIn } from '../../frames.ts';
import { createSharedConnection } from './shared-connection.ts';
import type { Unasked, Wire } from './transport.ts';

export interface Program {
  readonly command: readonly string[];
  readonly cwd?: string;
  readonly env: Readonly<Record<string, string>>;
  readonly lineLimit: number;
}

/**
 * JSON does not escape these, and some programs treat each as the end of a line: the rest would be read as another frame, which
 * the gate did not decide on.
 */
const LINE_ENDS = /[\u0085\u2028\u2029]/g;

function oneLine(frame: object): string {
  const text = JSON.stringify(frame);
  return text.search(LINE_ENDS) < 0
    ? text
    : text.replace(LINE_ENDS, (end) => `\\u${end.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

export async function openStdio(program: Program, unasked: Unasked, log: Logger): Promise<Wire & { pid: number }> {
  const { command, cwd, env } = program;
  const child: Child = await startChild({
    command,
    env,
    ...(cwd !== undefined && { cwd }),
    onStderr: (line) => log.info({ server: command[0], line }, 'a tool server said'),
  });
  const write = lineWriter(child.stdin, { batched: true });
  const exited = () => new Fault('upstream_unavailable', 'the server has exited');
  const connection = createSharedConnection(
    (frame) => (child.stdin.destroyed ? Promise.reject(exited()) : write(oneLine(frame))),
    unasked,
  );
  const skipped = (why: string, head = '') => {
    log.warn({ server: command[0], why }, 'a line of a tool server was skipped');
    // An answer that is too long to be read is an answer all the same: the request that waits for it must not wait for ever.
    connection.unread(head, new Fault('payload_too_large', `the server's answer was not read: ${why}`));
  };

  const readLoop = forEachLine(child.stdout, { limit: program.lineLimit, skipped }, (text) => {
    const frames = framesIn(text);
    for (const frame of frames) connection.take(frame);
    if (frames.length === 0) skipped('it is not a frame');
  })
    .catch((cause) => log.warn({ err: cause }, 'a tool server cannot be read any more'))
    .finally(() => connection.over(exited()));

  return {
    pid: child.pid,
    gone: Promise.race([readLoop, child.exited.then(() => undefined)]),
    request: connection.request,
    notify: connection.notify,
    respond: connection.respond,
    close: () => child.close(),
  };
}
