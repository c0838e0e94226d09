/** Progress finds its way back: a token of ours on the way to the server, the caller's own on the way back. */
import type { Json, JsonObject } from '../../src/index.ts';
import { metaOf, type Notice } from './frames.ts';

/** The same request with a token only this request has. Undefined when nobody wants progress. */
export function withToken(params: JsonObject, ours: string): { params: JsonObject; theirs: Json } | undefined {
  const meta = metaOf(params);
  const theirs = meta.progressToken;
  if (theirs === undefined) return undefined;
  return { params: { ...params, _meta: { ...meta, progressToken: ours } }, theirs };
}

/** As the caller knows it. */
export function restored(frame: Notice, theirs: Json | undefined): Notice {
  if (frame.method !== 'notifications/progress' || theirs === undefined) return frame;
  return { ...frame, params: { ...frame.params, progressToken: theirs } };
}
