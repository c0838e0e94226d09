/** Replaces progress tokens: ours in requests to the server, the caller's in notifications from it. */
import type { Json, JsonObject } from '../../../src/index.ts';
import { metaOf, type Notice } from '../frames.ts';

/** The request with a token that no other request has. Undefined when the caller did not ask for progress. */
export function withToken(params: JsonObject, ours: string): { params: JsonObject; theirs: Json } | undefined {
  const meta = metaOf(params);
  const theirs = meta.progressToken;
  if (theirs === undefined) return undefined;
  return { params: { ...params, _meta: { ...meta, progressToken: ours } }, theirs };
}

/** The notification with the caller's token. */
export function restored(frame: Notice, theirs: Json | undefined): Notice {
  if (frame.method !== 'notifications/progress' || theirs === undefined) return frame;
  return { ...frame, params: { ...frame.params, progressToken: theirs } };
}
