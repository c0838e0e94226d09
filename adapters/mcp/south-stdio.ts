/**
 * One server as a child of ours, a frame to a line. Answers find their request by an id of ours; progress by a token of
 * ours. What names no request goes to whoever listens for the server as a whole.
 */
import { META } from '../../mappings/mcp.ts';
import { Fault, type JsonObject, type Logger } from '../../src/index.ts';
import { type Child, startChild } from '../../src/wire/child.ts';
import { lineWriter, readLines } from '../../src/wire/ndjson.ts';
import { isNotice, isResponse, metaOf, type Notice, notice, type Outcome, type Request, readFrame } from './frames.ts';
import type { Unasked, Wire } from './south.ts';

export interface Program {
  readonly command: readonly string[];
  readonly cwd?: string;
  readonly env: Readonly<Record<string, string>>;
  readonly lineLimit: number;
}

interface Waiting {
  readonly heard: (frame: Notice | Request) => void;
  settle(outcome: Outcome): void;
  fail(cause: Error): void;
}

export async function openStdio(program: Program, unasked: Unasked, log: Logger): Promise<Wire & { pid: number }> {
  const { command, cwd, env } = program;
  const child: Child = await startChild({
    command,
    env,
    ...(cwd !== undefined && { cwd }),
    onStderr: (line) => log.info({ server: command[0], line }, 'a tool server said'),
  });
  const write = lineWriter(child.stdin);
  const waiting = new Map<string, Waiting>();
  const skipped = (why: string) => log.warn({ server: command[0], why }, 'a line of a tool server was skipped');

  const reading = (async () => {
    for await (const line of readLines(child.stdout, { limit: program.lineLimit, skipped })) take(line);
  })()
    .catch((cause) => log.warn({ err: cause }, 'a tool server cannot be read any more'))
    .finally(() => {
      const gone = new Fault('upstream_unavailable', 'the server has exited');
      for (const each of waiting.values()) each.fail(gone);
      waiting.clear();
    });

  function take(line: string): void {
    const frame = frameOf(line);
    if (!frame) {
      skipped('it is not a frame');
      return;
    }
    if (isResponse(frame)) {
      waiting.get(String(frame.id))?.settle('error' in frame ? { error: frame.error } : { result: frame.result });
      return;
    }
    const owner = isNotice(frame) ? waiting.get(ownerOf(frame)) : undefined;
    if (owner) owner.heard(frame);
    else unasked(frame);
  }

  return {
    pid: child.pid,
    gone: Promise.race([reading, child.exited.then(() => undefined)]),
    request(id, method, params, { signal, heard }) {
      return new Promise<Outcome>((resolve, reject) => {
        const over = () => {
          waiting.delete(id);
          signal.removeEventListener('abort', giveUp);
        };
        const giveUp = () => {
          over();
          void write(JSON.stringify(notice('notifications/cancelled', { requestId: id })));
          reject(new Fault('client_closed', 'the request was given up'));
        };
        if (signal.aborted) return giveUp();
        signal.addEventListener('abort', giveUp, { once: true });
        waiting.set(id, {
          heard,
          settle(outcome) {
            over();
            resolve(outcome);
          },
          fail(cause) {
            over();
            reject(cause);
          },
        });
        if (child.stdin.destroyed) waiting.get(id)?.fail(new Fault('upstream_unavailable', 'the server has exited'));
        else void write(JSON.stringify({ jsonrpc: '2.0', id, method, ...(params && { params }) }));
      });
    },
    notify: (frame) => write(JSON.stringify(frame)),
    respond: (id, outcome) => write(JSON.stringify({ jsonrpc: '2.0', id, ...outcome })),
    close: () => child.close(),
  };
}

function frameOf(line: string) {
  try {
    return readFrame(JSON.parse(line));
  } catch {
    return undefined;
  }
}

/** The request a notification names: by its subscription, or by its progress. Both are ids of ours. */
function ownerOf({ method, params }: Notice): string {
  const subscription = metaOf(params as JsonObject | undefined)[META.subscription];
  if (subscription !== undefined) return String(subscription);
  return method === 'notifications/progress' ? String(params?.progressToken ?? '') : '';
}
