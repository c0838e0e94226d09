/**
 * An event as each protocol's door tells it. The log keeps no frame that left: doors render frames from events, and here the same
 * renderers do it once more. A frame often depends on the events before it, so these are rendered first, as a door would have.
 */
import type { CoreEvent } from '../model/events.ts';
import { own } from '../model/values/own.ts';
import type { FrameView } from '../ports/index.ts';

/** Further into its task than this, an event is not rendered for a person who only looks. */
export const MOST_RENDERED = 2000;

export interface RenderedEvent {
  readonly protocol: string;
  readonly frames: readonly object[];
  /** Why there is no frame. */
  readonly left_out: string | null;
}

export async function framesOf(
  wanted: CoreEvent,
  task: Iterable<CoreEvent> | AsyncIterable<CoreEvent>,
  views: ReadonlyMap<string, FrameView>,
): Promise<readonly RenderedEvent[]> {
  const broken = new Set<string>();
  const found = new Map<string, readonly object[]>();
  let reached = false;
  const give = async (event: CoreEvent) => {
    for (const [protocol, view] of views) {
      if (broken.has(protocol)) continue;
      try {
        const frames = await view.frames(event);
        if (event.id === wanted.id) found.set(protocol, frames);
      } catch {
        // An event that a caller reported may lack any member; a renderer that stumbles over one shows nothing more.
        broken.add(protocol);
      }
    }
  };
  for await (const event of task) {
    if (event.id > wanted.id) break;
    await give(event);
    reached = event.id === wanted.id;
    if (reached) break;
  }
  // Of a task with more events than are read, only the event itself is rendered.
  if (!reached) await give(wanted);
  return [...views].map(([protocol, { leftOut }]) => {
    const frames = found.get(protocol) ?? [];
    const reason = broken.has(protocol)
      ? 'it cannot be rendered'
      : (own(leftOut, wanted.event)?.leftOut ?? 'nothing is sent for it here');
    return { protocol, frames, left_out: frames.length > 0 ? null : reason };
  });
}
