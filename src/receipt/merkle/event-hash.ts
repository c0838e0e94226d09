/**
 * The hashes that represent events in a proof. An event is hashed over its canonical text (RFC 8785) exactly as the log holds it;
 * a receipt commits to a task's events with one root over them, grown as they are committed and never by reading the log again.
 */
import { hash } from 'node:crypto';
import type { CoreEvent } from '../../model/events.ts';
import { canonicalJson, spellAnyway } from '../seal/canonical-json.ts';
import { foldPeaks, nodeBytes, spelled } from './merkle.ts';

/** Says how the `sha256` of an event log is computed; stands in the material that carries it. */
export const LOG_CONTENT = 'application/jsonl; digest=rfc6962-sha256; canonical=rfc8785';
const ALGORITHM = 'rfc6962-sha256';

/** The path under which a gateway serves the events of a task. */
export function logUri(taskId: string): string {
  return `/v1/tasks/${taskId}/events`;
}

/**
 * The leaf an event is in every tree it belongs to: SHA-256 of a zero byte and the event's canonical text (the leaf rule of RFC
 * 6962). Anyone who holds the event can compute it.
 */
export function eventLeaf(event: CoreEvent): string {
  return spelled(leafBytes(event));
}

/** The leaf as 32 bytes in a binary string, the form in which trees over events grow: half the cost of hexadecimal. */
export function leafBytes(event: CoreEvent): string {
  return hash('sha256', `\0${eventText(event)}`, 'binary');
}

/** Every event has one text, even when RFC 8785 has no form for its values: a log accepts what callers send. */
export function eventText(event: CoreEvent): string {
  try {
    return canonicalJson(event);
  } catch {
    // The event as it will be read back, without values that JSON cannot carry.
    return spellAnyway(JSON.parse(JSON.stringify(event)));
  }
}

/** The events of one task so far: the compact form of their tree. */
export interface EventRun {
  count: number;
  /** Roots of the perfect subtrees, left to right, as binary strings. */
  readonly frontier: string[];
  first: string | undefined;
  last: string | undefined;
}

export function createRun(): EventRun {
  return { count: 0, frontier: [], first: undefined, last: undefined };
}

export function copyOfRun({ count, frontier, first, last }: EventRun): EventRun {
  return { count, frontier: [...frontier], first, last };
}

/** Adds the event; returns its leaf. */
export function extendRun(run: EventRun, event: CoreEvent): string {
  const leaf = leafBytes(event);
  let node = leaf;
  for (let index = run.count; index % 2 === 1; index = (index - 1) / 2) node = nodeBytes(run.frontier.pop()!, node);
  run.frontier.push(node);
  run.count += 1;
  run.first ??= event.id;
  run.last = event.id;
  return leaf;
}

/** The commitment as it stands in a receipt, members in canonical order. */
export interface EventCommitment {
  readonly root: string;
  readonly metadata: {
    readonly algorithm: string;
    readonly count: number;
    readonly first_event_id: string;
    readonly last_event_id: string;
    readonly task_id: string;
    readonly through_sequence: number;
  };
}

export function logRoot(events: readonly CoreEvent[]): string {
  const run = createRun();
  for (const event of events) extendRun(run, event);
  return rootOfRun(run.frontier);
}

export function commitmentOf(run: EventRun, taskId: string): EventCommitment | undefined {
  const { count, frontier, first, last } = run;
  if (first === undefined || last === undefined) return undefined;
  return {
    root: rootOfRun(frontier),
    metadata: {
      algorithm: ALGORITHM,
      count,
      first_event_id: first,
      last_event_id: last,
      task_id: taskId,
      through_sequence: count,
    },
  };
}

export function rootOfRun(frontier: readonly string[]): string {
  if (frontier.length === 0) return foldPeaks([]);
  return spelled(frontier.reduceRight((root, peak) => nodeBytes(peak, root)));
}
