/** The A2A door on a story's gateway, and a peer outside who speaks to it: JSON-RPC frames, streams on channels of their own. */
import { settingsOf } from '../../../adapters/a2a/config.ts';
import { a2aDoor } from '../../../adapters/a2a/server/door.ts';
import type { Json, JsonObject } from '../../../src/model/schema.ts';
import type { OpenWire } from '../playing.ts';
import { openHttpDoor } from './http.ts';

const TOKEN = 'a-token-for-ana';

/**
 * A frame with a `path` is a bare GET; any other is a JSON-RPC request, with `headers` beside it when there are some:
 * `{"headers": {…}, "body": {…}}`. On a channel it is a stream: each thing it says is received there, then `{"end": true}`.
 */
export function openA2a(version: string): OpenWire {
  return async (world, hear) => {
    const settings = settingsOf({ workspace: world.workspace.id, public_url: 'http://bridge.example' });
    const { url, close } = await openHttpDoor(world, TOKEN, (deps) => a2aDoor(settings, deps));
    const talking = new Set<Promise<void>>();
    let line = new AbortController();
    const common = { authorization: `Bearer ${TOKEN}`, ...(version && { 'a2a-version': version }) };

    async function post({ headers, body }: { headers?: Record<string, string>; body: Json }, signal?: AbortSignal) {
      return await fetch(`${url}/a2a/demo`, {
        method: 'POST',
        headers: { ...common, 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
        ...(signal && { signal }),
      });
    }

    async function streamed(frame: { headers?: Record<string, string>; body: Json }, on: string, signal: AbortSignal) {
      const answer = await post(frame, signal);
      if (!answer.headers.get('content-type')?.startsWith('text/event-stream')) {
        return hear((await answer.json()) as Json, { on });
      }
      let rest = '';
      for await (const chunk of answer.body!.pipeThrough(new TextDecoderStream())) {
        rest += chunk;
        const events = rest.split('\n\n');
        rest = events.pop() ?? '';
        for (const reported of events)
          if (reported.startsWith('data: ')) hear(JSON.parse(reported.slice(6)) as Json, { on });
      }
      hear({ end: true }, { on });
    }

    function begin(talk: Promise<void>): void {
      talking.add(talk);
      talk.catch(() => {}).finally(() => talking.delete(talk));
    }

    return {
      async say(input, { on }) {
        const frame = input as JsonObject;
        if (frame.hang_up) return line.abort();
        if (typeof frame.path === 'string') {
          const answer = await fetch(`${url}${frame.path}`, { headers: common });
          return hear({ status: answer.status, text: await answer.text() });
        }
        const call = ('body' in frame ? frame : { body: frame }) as { headers?: Record<string, string>; body: Json };
        if (!on) return hear((await (await post(call)).json()) as Json);
        line = new AbortController();
        begin(streamed(call, on, line.signal));
      },
      async close() {
        line.abort();
        await Promise.allSettled(talking);
        await close();
      },
    };
  };
}
