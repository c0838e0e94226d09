/** Reads the gateway's event streams and resumes each from the last event it has seen, so that none is lost and none repeated. */
import { anySignal } from '../../../model/values/signals.ts';
import { ApiError, failure, headers } from '../api.ts';
import type { LogEvent } from '../rows.ts';
import { awake, untilRest } from './presence.ts';

export interface Follow {
  readonly path: string;
  /** Exclusive; undefined lets the gateway choose. */
  readonly after?: string | undefined;
  readonly onEvents: (events: readonly LogEvent[]) => void;
  readonly onState?: (state: 'live' | 'waiting' | 'over') => void;
  readonly signal: AbortSignal;
  /** One tab of the browser goes on following this stream while nobody looks at it. */
  readonly kept?: boolean;
}

const FIRST_WAIT_MS = 300;
const LONGEST_WAIT_MS = 5000;

export async function follow({ path, after, onEvents, onState, signal, kept = false }: Follow): Promise<void> {
  let last = after;
  let wait = FIRST_WAIT_MS;
  for (;;) {
    await awake(kept, signal);
    if (signal.aborted) return;
    const rest = untilRest(kept);
    try {
      const response = await fetch(path, {
        redirect: 'error',
        headers: { ...headers(), ...(last && { 'last-event-id': last }) },
        signal: anySignal([signal, rest.signal]),
      });
      if (response.status === 204) return onState?.('over');
      if (!response.ok || !response.body) throw await failure(response);
      onState?.('live');
      wait = FIRST_WAIT_MS;
      for await (const frames of framesOf(response.body)) {
        const events: LogEvent[] = [];
        for (const { event, data } of frames) {
          const said = JSON.parse(data);
          if (event === 'error')
            throw new ApiError(409, said.error?.code ?? 'error', said.error?.message ?? '', said.error?.details);
          // A reader that comes back is told nothing twice, whatever the gateway repeats.
          if (last && said.id <= last) continue;
          last = said.id;
          events.push(said);
        }
        if (events.length > 0) onEvents(events);
      }
      if (path.includes('/tasks/')) return onState?.('over');
    } catch (thrown) {
      if (signal.aborted) return;
      if (rest.signal.aborted) continue;
      const oldest = thrown instanceof ApiError && thrown.code === 'cursor_expired' ? thrown.details.oldest : undefined;
      if (typeof oldest === 'string') {
        last = oldest;
        continue;
      }
      if (thrown instanceof ApiError && [401, 403, 404].includes(thrown.status)) return onState?.('over');
    } finally {
      rest.leave();
    }
    onState?.('waiting');
    await new Promise((resolve) => setTimeout(resolve, wait));
    wait = Math.min(wait * 2, LONGEST_WAIT_MS);
  }
}

interface Frame {
  readonly event: string;
  readonly data: string;
}

/** The frames of each chunk together, so that a burst is shown at once. */
async function* framesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<readonly Frame[]> {
  const reader = body
    // The types of the two libraries differ in what a decoder takes.
    .pipeThrough(new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>)
    .getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split('\n\n');
    rest = blocks.pop() ?? '';
    const frames = blocks.flatMap((block) => {
      let event = 'message';
      const data: string[] = [];
      for (const line of block.split('\n')) {
        if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''));
        else if (line.startsWith('event:')) event = line.slice(6).trim();
      }
      return data.length > 0 ? [{ event, data: data.join('\n') }] : [];
    });
    if (frames.length > 0) yield frames;
  }
}
