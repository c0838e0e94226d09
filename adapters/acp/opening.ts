/**
 * The question whether a session may be opened. There is no session yet to show it in, so where the editor has forms it is a form
 * about the editor's own request; it can be answered elsewhere too, and the request waits.
 */
import { asText, type Json, type JsonObject } from '../../src/index.ts';
import { within } from './shapes.ts';

export interface OpeningRequest {
  readonly id: Json;
  readonly method: string;
  readonly cwd: Json | undefined;
}

/** `who`: the agent of the session, where the door has one. */
export function openingForm({ id, method, cwd }: OpeningRequest, who?: string): JsonObject {
  const what = who === undefined ? 'a session be opened' : `the agent ${who} open a session`;
  return {
    mode: 'form',
    requestId: id,
    message: `May ${what} in ${asText(cwd ?? 'this directory')}? (${method})`,
    requestedSchema: {
      type: 'object',
      properties: { allow: { type: 'boolean', title: 'Open the session' } },
      required: ['allow'],
    },
  };
}

/** Anything but a form that was sent off with a yes is a no. */
export function openingAnswer(result: unknown): { readonly approved: boolean; readonly reason?: string } {
  const approved = within(result, 'action') === 'accept' && within(result, 'content', 'allow') === true;
  return { approved, ...(!approved && { reason: 'said no in the editor' }) };
}
