/** The state of the log as it is while nobody else may write. */
import type { LogEnd } from '../../engine/database.ts';

export interface LockedState {
  readonly end: LogEnd;
  readonly floor: number;
  /** Of the last event, if it is kept. */
  readonly body: string | undefined;
}

export type StateRow = [
  ...[generation: number, writer: string, position: number, resource: number, location: number, word: number],
  ...[floor: number, floorAt: string, body: string | null, server: string],
];

export function stateOf(row: StateRow): LockedState {
  const [, , position, resource, location, word, floor, floorAt, body] = row;
  return { end: { position, floorAt, resource, location, word }, floor, body: body ?? undefined };
}
