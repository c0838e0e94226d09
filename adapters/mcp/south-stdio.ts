/** One server as a child of ours, a frame to a line. What it writes that is no frame is skipped, and said to be. */
import { Fault, type Logger } from '../../src/index.ts';
import { type Child, startChild } from '../../src/wire/child.ts';
import { hearLines, lineWriter } from '../../src/wire/ndjson.ts';
import { framesIn } from './frames.ts';
import type { Unasked, Wire } from './south.ts';
import { createSouthLine } from './south-line.ts';

export interface Program {
  readonly command: readonly string[];
  readonly cwd?: string;
  readonly env: Readonly<Record<string, string>>;
  readonly lineLimit: number;
}

export async function openStdio(program: Program, unasked: Unasked, log: Logger): Promise<Wire & { pid: number }> {
  const { command, cwd, env } = program;
  const child: Child = await startChild({
    command,
    env,
    ...(cwd !== undefined && { cwd }),
    onStderr: (line) => log.info({ server: command[0], line }, 'a tool server said'),
  });
  const write = lineWriter(child.stdin, { together: true });
  const exited = () => new Fault('upstream_unavailable', 'the server has exited');
  const line = createSouthLine(
    (frame) => (child.stdin.destroyed ? Promise.reject(exited()) : write(JSON.stringify(frame))),
    unasked,
  );
  const skipped = (why: string, head = '') => {
    log.warn({ server: command[0], why }, 'a line of a tool server was skipped');
    // An answer that is too long to be read is an answer all the same: the request that waits for it must not wait for ever.
    line.unread(head, new Fault('payload_too_large', `the server's answer was not read: ${why}`));
  };

  const reading = hearLines(child.stdout, { limit: program.lineLimit, skipped }, (text) => {
    const frames = framesIn(text);
    for (const frame of frames) line.take(frame);
    if (frames.length === 0) skipped('it is not a frame');
  })
    .catch((cause) => log.warn({ err: cause }, 'a tool server cannot be read any more'))
    .finally(() => line.over(exited()));

  return {
    pid: child.pid,
    gone: Promise.race([reading, child.exited.then(() => undefined)]),
    request: line.request,
    notify: line.notify,
    respond: line.respond,
    close: () => child.close(),
  };
}
