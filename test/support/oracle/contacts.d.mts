import type { JsonObject } from '../../../src/model/schema.ts';

/** What an instrumented upstream saw as an act. */
export interface Contact {
  /** Position of the newest event in the log when it was seen. */
  readonly after: number;
  /** As they arrived, in the form in which the adapter puts them to the gate. */
  readonly arguments: JsonObject;
  readonly tool?: string;
  /** The same act as other frames of the same sender described it: an allow of one of them is enough. */
  readonly or?: readonly { readonly tool?: string; readonly arguments: JsonObject }[];
}

/** The newest committed position; zero where there is no log yet. Works from any process. */
export function newestPosition(dataDir: string): number;
/** Appends one line to a file, with the position at this moment. */
export function recordContact(file: string, dataDir: string, contact: Omit<Contact, 'after'>): void;
export function readContacts(file: string): Contact[];
export function forgetLogs(): void;
