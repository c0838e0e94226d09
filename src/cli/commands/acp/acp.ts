/**
 * `tollbridge acp -- <command…>`: between an editor and its agent, over standard input and output. It shares the log
 * with other processes on the same data directory. The agent is started and initialized before heavy modules are
 * loaded, because the editor waits. Nothing but the protocol goes to standard output.
 */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { openLink, type RelayLink } from '../../../../adapters/acp/relay/index.ts';
import { Fault } from '../../../model/faults.ts';
import type { OpenRelay } from '../../../ports/index.ts';
import { userPaths } from '../../../runtime/config/user-paths.ts';
import { type Child, startChild } from '../../../transport/process/child.ts';
import { environmentInFront } from '../../child-environment.ts';
import type { CommonOptions } from '../../context.ts';

export interface AcpOptions extends CommonOptions {
  /** The agent's name in rules and the log. */
  readonly name?: string;
  readonly hideAlways?: boolean;
  readonly additions?: boolean;
  readonly blockedTerminal?: string;
  readonly mcp?: readonly string[];
  readonly stall?: string;
  readonly thoughts?: string;
}

export async function acp(command: readonly string[], options: AcpOptions): Promise<void> {
  // Editors let people log in by running this very command in a terminal; there is no protocol to relay there.
  const { env, additions } = await knownBefore(options);
  if (process.stdin.isTTY) return await inTerminal(command, env);
  // An editor that stops reading has gone; that ends the process in order instead of with an unhandled error.
  process.stdout.removeAllListeners('error');
  const child = await startChild({ command, env, onStderr: (line) => process.stderr.write(`${line}\n`) });
  const link = openLink({ editor: { input: process.stdin, output: process.stdout }, agent: child, additions });
  const ended = whenOver(link, child);
  const opening = import('./acp-runtime.ts').then(({ openRelay }) => openRelay(command, options, link));
  opening.catch(() => {});
  try {
    const { relay, close } = await opening;
    try {
      await conclude(await ended, relay, link, child);
    } finally {
      await close();
    }
  } finally {
    await child.close();
    await flushed(link);
    process.stdin.destroy();
    // Output that an editor does not read keeps the process alive; it is dropped once everything else is closed.
    setTimeout(() => process.exit(), DRAIN_MS).unref();
  }
}

interface KnownBefore {
  readonly env: Record<string, string>;
  /** The response to `initialize` passes before the relay is there. */
  readonly additions: boolean;
}

/**
 * Variables of vaults are known once the configuration is read; without one there is only our own prefix to leave out.
 */
async function knownBefore(options: AcpOptions): Promise<KnownBefore> {
  const configured = options.config || process.env.TOLLBRIDGE_CONFIG || existsSync(userPaths().file);
  if (!configured) return { env: environmentInFront([]), additions: options.additions ?? true };
  const { quietConfigFrom } = await import('../../context.ts');
  const { vaults, relays } = await quietConfigFrom(options);
  return { env: environmentInFront(vaults), additions: options.additions ?? relays.acp?.additions !== 'off' };
}

type Over = { readonly who: 'editor' | 'agent'; readonly why: string };

function whenOver(link: RelayLink, child: Child): Promise<Over> {
  const editor = link.editorEnded.then(
    (cause): Over => ({ who: 'editor', why: cause?.message ?? 'the editor has gone' }),
  );
  // The agent's last output may still be in the pipe, unless a descendant holds the stream open.
  const drained = child.exited.then(() => untilQuiet(link));
  const agent = Promise.race([drained.then(() => undefined), link.agentEnded]).then(async (cause): Promise<Over> => {
    if (cause) return { who: 'agent', why: `the agent was cut off: ${cause.message}` };
    const exit = await Promise.race([child.exited, pause(DRAIN_MS)]);
    const how = exit
      ? exit.signal
        ? `was killed by ${exit.signal}`
        : `exited with ${exit.code}`
      : 'closed its output';
    return { who: 'agent', why: `the agent ${how}` };
  });
  const signalled = new Promise<Over>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.once(signal, () => resolve({ who: 'editor', why: `ended by ${signal}` }));
    }
  });
  return Promise.race([editor, agent, signalled]);
}

async function conclude({ who, why }: Over, relay: OpenRelay, link: RelayLink, child: Child): Promise<void> {
  // An unavailable log cannot record the end, and must not keep the process: the next one finds the task and ends it.
  setTimeout(() => process.exit(1), LEAVING_MS).unref();
  if (who === 'editor') {
    await Promise.all([relay.editorGone(), child.close()]);
    return;
  }
  await relay.agentGone(why);
  await flushed(link);
  process.stderr.write(`tollbridge: ${why}\n`);
  const exit = await Promise.race([child.exited, pause(0)]);
  process.exitCode = exit?.code || 1;
}

/**
 * Until everything is read, or nothing more arrived for a while; an editor that does not read delays this, within a
 * limit.
 */
async function untilQuiet(link: RelayLink): Promise<void> {
  const until = performance.now() + LEAVING_MS / 2;
  for (let received = Number.NaN; received !== link.agentReceivedAt() && performance.now() < until; ) {
    received = link.agentReceivedAt();
    const over = await Promise.race([link.agentEnded.then(() => true), pause(DRAIN_MS)]);
    if (over) return;
  }
}

/** An editor that no longer reads does not keep the process from exiting. */
async function flushed(link: RelayLink): Promise<void> {
  await Promise.race([link.editor.flushed(), pause(DRAIN_MS)]);
}

const DRAIN_MS = 1_000;
/** Longer than ending an agent and writing the log take. */
const LEAVING_MS = 30_000;

function pause(ms: number): Promise<undefined> {
  return new Promise((resolve) => setTimeout(() => resolve(undefined), ms));
}

async function inTerminal([program, ...args]: readonly string[], env: Record<string, string>): Promise<void> {
  if (!program) throw new Fault('invalid_request', 'say which agent: tollbridge acp -- <command>');
  const child = spawn(program, args, { stdio: 'inherit', env });
  process.exitCode = await new Promise<number>((resolve, reject) => {
    child.once('error', () => reject(new Fault('upstream_unavailable', `could not start ${program}`)));
    child.once('exit', (code) => resolve(code ?? 1));
  });
}
