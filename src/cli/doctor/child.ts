/**
 * Checks a program that tollbridge is to wrap: whether it is found, starts and stays, and writes nothing but protocol
 * to its standard output. One stray line there, a banner or a log, breaks every client that reads it.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { anySignal } from '../../model/values/signals.ts';
import { type Child, startChild } from '../../transport/process/child.ts';
import { environmentInFront } from '../child-environment.ts';
import { errorMessageOf } from '../output/error-output.ts';
import { brief } from '../output/terminal-text.ts';
import { bad, type Finding, ok, warn } from './finding.ts';

/** Long enough for a program to write its start-up output. */
const SETTLE_MS = 2_000;

export async function lookAtChild(
  command: readonly string[],
  settleMs = SETTLE_MS,
  env: Readonly<Record<string, string>> = environmentInFront([]),
): Promise<readonly Finding[]> {
  const name = command[0] ?? '';
  const errors: string[] = [];
  let child: Child;
  try {
    child = await startChild({ command, env, onStderr: (line) => errors.push(line) });
  } catch (thrown) {
    const { sentence } = errorMessageOf(thrown);
    return [bad('command', sentence, `check its spelling, install it, or give its whole path instead of ${name}`)];
  }
  const said = { stray: undefined as string | undefined, lines: 0 };
  const polluted = new AbortController();
  listen(child, said, polluted);
  const settled = new AbortController();
  const gone = await Promise.race([
    child.exited,
    sleep(settleMs, undefined, { signal: anySignal([settled.signal, polluted.signal]) }).catch(() => undefined),
  ]);
  settled.abort();
  await child.close(500);
  return [ended(name, gone ?? undefined, errors), stdout(name, said)];
}

function listen(child: Child, said: { stray: string | undefined; lines: number }, polluted: AbortController): void {
  let rest = '';
  const line = (text: string) => {
    if (text.trim() === '') return;
    said.lines += 1;
    if (said.stray === undefined && !isMessage(text)) {
      said.stray = text;
      polluted.abort();
    }
  };
  child.stdout.setEncoding('utf8');
  child.stdout.on('data', (text: string) => {
    const parts = (rest + text).split('\n');
    rest = (parts.pop() ?? '').slice(0, 65_536);
    for (const part of parts) line(part);
  });
  child.stdout.on('end', () => line(rest));
}

/** Every stdio protocol we know sends JSON objects, one per line. */
function isMessage(line: string): boolean {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null;
  } catch {
    return false;
  }
}

function ended(
  name: string,
  gone: { code: number | null; signal: string | null } | undefined,
  errors: string[],
): Finding {
  if (!gone) return ok('command', `${name} starts and waits for a client`);
  const last = errors.at(-1);
  const why = last ? `; it said: ${brief(last, 200)}` : '';
  const how = gone.signal ? `was ended by ${gone.signal}` : `ended at once with exit code ${gone.code}`;
  if (gone.code === 0)
    return warn('command', `${name} ${how}${why}`, 'give the arguments that make it stay and speak its protocol');
  return bad('command', `${name} ${how}${why}`, 'run the command by itself and correct the error it prints');
}

function stdout(name: string, { stray }: { stray: string | undefined }): Finding {
  if (stray === undefined) return ok('stdout', `${name} keeps its standard output for the protocol`);
  return bad(
    'stdout',
    `${name} writes to its standard output what is no message: ${brief(stray, 80)}`,
    'let it log to standard error instead; many programs have an option such as --quiet or --log-level',
  );
}
