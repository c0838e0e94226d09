/** An event as it travels, over polling and over a stream alike. Certain members never do. Pure. */
import { REDACTED_MEMBERS } from '../../../mappings/runs.ts';
import type { JsonObject } from '../../../src/index.ts';

export interface RunEvent {
  readonly seq: number;
  readonly type: string;
  readonly timestamp: string;
  readonly payload: { readonly redacted: boolean; readonly value: JsonObject };
}

/** The type of an event and its value, before it is numbered. */
export type Rendered = readonly [type: string, value: JsonObject];

export function toRunEvent(seq: number, type: string, timestamp: string, value: JsonObject): RunEvent {
  return { seq, type, timestamp, payload: redacted(value) };
}

function redacted(value: JsonObject): RunEvent['payload'] {
  const kept = Object.entries(value).filter(([key]) => !(REDACTED_MEMBERS as readonly string[]).includes(key));
  return { redacted: kept.length < Object.keys(value).length, value: Object.fromEntries(kept) };
}
