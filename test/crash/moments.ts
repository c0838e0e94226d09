/**
 * When to kill. Chance alone rarely falls between an act and its record, so some moments are waited for: an event that a
 * watcher hears, an effect that reaches the journal, the first thing a starting gateway writes.
 */
import { type FSWatcher, watch } from 'node:fs';
import { basename, dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Chance } from './random.ts';

export type Moment =
  /** While clients are at work; counted from the first answer, or from the first question. */
  | { readonly kind: 'load'; readonly ms: number; readonly answered: boolean }
  | { readonly kind: 'event'; readonly event: string; readonly ms: number }
  | { readonly kind: 'effect'; readonly nth: number }
  /** While it starts: at any time, or as soon as it takes up what was left. */
  | { readonly kind: 'start'; readonly share: number }
  | { readonly kind: 'recovery'; readonly nth: number; readonly ms: number };
export type MomentKind = Moment['kind'];

const WEIGHTS: Readonly<Record<MomentKind, number>> = { load: 44, event: 22, effect: 16, recovery: 13, start: 5 };
const EVENTS = [
  'task.submitted',
  'task.started',
  'tool.requested',
  'tool.approval_required',
  'tool.approved',
  'tool.denied',
  'vendor.tollbridge.ask_used',
  'vendor.tollbridge.decided',
  'vendor.tollbridge.recovered',
  'vendor.tollbridge.message_delta',
  'tool.completed',
  'artifact.created',
  'user.cancel_requested',
  'user.message',
  'agent.message',
  'task.input_required',
  'task.completed',
  'task.canceled',
  'receipt.issued',
];

/** A kill is often followed by another one while the gateway is still getting up. */
export function pickMoment(chance: Chance, before: MomentKind | undefined): Moment {
  const again = (before === 'load' || before === 'event' || before === 'effect') && chance.happens(0.12);
  const kind = again ? 'recovery' : chance.weighted(WEIGHTS);
  switch (kind) {
    case 'load':
      return { kind, ms: chance.between(5, 400), answered: chance.happens(0.8) };
    case 'event':
      return { kind, event: chance.pick(EVENTS), ms: chance.pick([0, 0, 0, 1, 3, 10]) };
    case 'effect':
      return { kind, nth: chance.between(1, 5) };
    case 'start':
      return { kind, share: 0.2 + chance.next() };
    case 'recovery':
      return { kind, nth: chance.between(1, 16), ms: chance.pick([0, 0, 0, 5, 20]) };
  }
}

/** Resolves when the file has changed that often. Its directory has to be there. */
export function whenWritten(file: string, times: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    let left = times;
    let watcher: FSWatcher | undefined;
    const done = () => {
      watcher?.close();
      resolve();
    };
    signal.addEventListener('abort', done, { once: true });
    watcher = watch(dirname(file), (_, name) => {
      if (name === basename(file)) left -= 1;
      if (left === 0) done();
    });
  });
}

export interface Signs {
  /** What to call when a watcher hears an event of this kind. */
  readonly received: Map<string, () => void>;
  readonly journal: string;
  onReply(tell: () => void): void;
}

/** For moments that do not come. */
const LONGEST_WAIT_MS = 4_000;

/** Resolves at the moment, while the gateway runs. */
export async function comes(moment: Moment, { received, journal, onReply }: Signs, signal: AbortSignal): Promise<void> {
  const longest = sleep(LONGEST_WAIT_MS, undefined, { signal, ref: false }).catch(() => {});
  if (moment.kind === 'load') {
    if (moment.answered) await new Promise<void>((resolve) => onReply(resolve));
    await sleep(moment.ms);
  }
  if (moment.kind === 'effect') await Promise.race([whenWritten(journal, moment.nth, signal), longest]);
  if (moment.kind === 'event') {
    await Promise.race([new Promise<void>((resolve) => received.set(moment.event, resolve)), longest]);
    if (moment.ms > 0) await sleep(moment.ms);
  }
}
