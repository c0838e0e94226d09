/**
 * The turns of several processes on one file, as a file beside it: the process that creates it has the turn, and removes it at its end. One
 * that was left by a process that died or stands still is removed when it is old. Two that both believe to have the turn do no harm: the
 * file's own lock and the check of its generation keep the log right.
 */
import { closeSync, existsSync, openSync, rmSync, statSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import type { WriterTurns } from '../../engine/database.ts';

/** How often a waiting process looks. */
const LOOK_MS = 1;
/** Several times as long as a turn lasts. */
const STALE_MS = 250;
/** After its turn a process lets one that waits look first, for so long. */
const GIVE_WAY_MS = 10;

export interface FileTurns extends WriterTurns {
  close(): void;
}

export function createTurns(path: string, version: () => number): FileTurns {
  let before: number | undefined;
  let mine = false;
  let closed = false;
  let giveWayUntil = 0;
  /** Says that a process waits. */
  const wish = `${path}-wanted`;
  let wishes = false;

  function tryTake(): boolean {
    try {
      closeSync(openSync(path, 'wx', 0o600));
      remove(wish);
      return true;
    } catch {
      make(wish);
      wishes = true;
      const made = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
      if (made !== undefined && Math.abs(Date.now() - made) > STALE_MS) remove(path);
      return false;
    }
  }

  function release(): void {
    if (!mine) return;
    mine = false;
    before = version();
    if (existsSync(wish)) giveWayUntil = performance.now() + GIVE_WAY_MS;
    remove(path);
  }

  async function take(longestMs: number) {
    const began = performance.now();
    while (performance.now() < giveWayUntil && !existsSync(path)) await pause(LOOK_MS);
    while (closed || !tryTake()) {
      if (closed || performance.now() - began > longestMs) return undefined;
      await pause(LOOK_MS);
    }
    mine = true;
    const othersWrote = version() !== before;
    return { othersWrote, release };
  }

  return {
    take,
    close() {
      closed = true;
      release();
      if (wishes) remove(wish);
    },
  };
}

function make(path: string): void {
  try {
    closeSync(openSync(path, 'w', 0o600));
  } catch {
    // As below.
  }
}

function remove(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // A directory that cannot be written: no process gets a turn, and all go on without.
  }
}
