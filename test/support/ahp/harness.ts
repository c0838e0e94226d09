/** An outside harness that says what the test says, and us asking it. */
import { mkdtemp, rm } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { createUpstream, type Upstream } from '../../../adapters/ahp/client/policy-engine.ts';
import type { UpstreamConfig } from '../../../adapters/ahp/config.ts';
import type { Action } from '../../../src/model/actions.ts';
import { lineWriter, readLines } from '../../../src/transport/ndjson/ndjson.ts';
import { listenUnix } from '../../../src/transport/process/unix-socket.ts';
import { ana } from '../gateway/actors.ts';
import { fakeClock } from '../gateway/clock.ts';
import { QUIET, type Said } from './gateway.ts';

export const NEVER = new AbortController().signal;
export const WELCOME = {
  protocol_version: '2.4',
  harness_info: { name: 'h', version: '1', capabilities: [] },
  config: { max_depth: 3 },
};

export type Script = (message: Said, say: (frame: unknown) => void, socket: Socket) => void;

/** A harness that says what the test says. */
export async function harness(script: Script, welcome: object = WELCOME) {
  const dir = await mkdtemp(join(tmpdir(), 'tollbridge-ahp-'));
  const path = join(dir, 'h.sock');
  const received: Said[] = [];
  const listening = await listenUnix(path, (socket) => {
    const write = lineWriter(socket);
    const say = (frame: unknown) => void write(typeof frame === 'string' ? frame : JSON.stringify(frame));
    (async () => {
      for await (const line of readLines(socket, { limit: 1 << 20 })) {
        const message = JSON.parse(line);
        received.push(message);
        if (message.method === 'ahp/handshake') say({ jsonrpc: '2.0', id: message.id, result: welcome });
        else script(message, say, socket);
      }
    })();
  });
  onTestFinished(async () => {
    await listening.close();
    await rm(dir, { recursive: true, force: true });
  });
  return { path, received };
}

export function upstream(config: UpstreamConfig): Upstream {
  let count = 0;
  const made = createUpstream(
    { name: 'h', hop: 'us', timeout_ms: 300, ...config },
    { log: QUIET, clock: fakeClock(), ids: { next: (prefix) => `${prefix}_${++count}` }, secret: async () => 'x' },
  );
  onTestFinished(() => made.close());
  return made;
}

export const action = (more: Partial<Action> = {}): Action => ({
  id: 'action_1',
  kind: 'tool',
  actor: ana,
  workspace_id: 'w',
  session_id: 'session_1',
  tool: 'bash',
  arguments: { command: 'ls' },
  effect: 'execute',
  evidence: 'held',
  ...more,
});

export const answer =
  (result: unknown): Script =>
  (message, say) =>
    say({ jsonrpc: '2.0', id: message.id, result });
