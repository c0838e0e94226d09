/** Frames of A2A's JSON-RPC binding, 1.0 and 0.3, to an agent whose one act goes through the gate. */
import { settingsOf } from '../../adapters/a2a/config.ts';
import { a2aDoor } from '../../adapters/a2a/server/door.ts';
import type { JsonObject } from '../../src/model/schema.ts';
import { type Fuzzed, TOKEN } from './gateway.ts';
import { fuzzHttp, type Protocol, type Request } from './http.ts';
import { leniently } from './mutations.ts';
import { a2aAway } from './peers/a2a.ts';
import { bothDirections, fuzzAway } from './peers/remote.ts';

const speech = (word: string, id: string): JsonObject => ({
  message: { messageId: id, role: 'ROLE_USER', parts: [{ text: word }] },
  configuration: { returnImmediately: true },
});
const olderSpeech = (word: string, id: string): JsonObject => ({
  message: { kind: 'message', messageId: id, role: 'user', parts: [{ kind: 'text', text: word }] },
  configuration: { blocking: false },
});

function protocolOf(): Protocol {
  return {
    headers: { authorization: `Bearer ${TOKEN}`, 'a2a-version': '1.0' },
    open: async ({ deps, runtime }) => await a2aDoor(settingsOf({}), deps).open(runtime.bridge),
    async prepare(send) {
      const path = '/a2a/agent';
      const rpc = (method: string, params: JsonObject, id: string): JsonObject => ({
        jsonrpc: '2.0',
        id,
        method,
        params,
      });
      const first = await send({
        method: 'POST',
        path,
        body: Buffer.from(JSON.stringify(rpc('SendMessage', speech('yes', 'm0'), 'r0'))),
      });
      const task = (JSON.parse(first.text) as { result?: { task?: { id: string } } }).result?.task?.id ?? 'none';
      const FRAMES: readonly ((id: string) => JsonObject)[] = [
        (id) => rpc('SendMessage', speech('yes', id), id),
        (id) => rpc('SendMessage', speech('no', id), id),
        (id) => rpc('SendMessage', speech('other', id), id),
        (id) => rpc('GetTask', { id: task }, id),
        (id) => rpc('ListTasks', { pageSize: 1 }, id),
        (id) => rpc('CancelTask', { id: task }, id),
        (id) => rpc('GetExtendedAgentCard', {}, id),
        (id) => rpc('DeleteTaskPushNotificationConfig', { taskId: task, id: 'c' }, id),
      ];
      const OLDER: readonly ((id: string) => JsonObject)[] = [
        (id) => rpc('message/send', olderSpeech('yes', id), id),
        (id) => rpc('tasks/get', { id: task }, id),
        (id) => rpc('tasks/cancel', { id: task }, id),
      ];
      return ({ frame, mutation }, count) => {
        const older = frame % 4 === 0;
        const frames = older ? OLDER : FRAMES;
        const made = frames[Math.floor(frame / 4) % frames.length] as (id: string) => JsonObject;
        return {
          method: 'POST',
          path,
          body: mutation(made(`f${count}`)),
          headers: { 'a2a-version': older ? '0.3' : '1.0' },
        };
      };
    },
    problem: rpcProblem,
  };
}

/** Every frame is answered, under its id where that can be read; one without an id is never carried out. */
function rpcProblem({ body }: Request, _status: number, text: string): string | undefined {
  const sent = leniently(body ?? Buffer.alloc(0)) as JsonObject | undefined;
  if (text.startsWith('event:') || text.startsWith('data:') || text.startsWith(':')) return undefined;
  let said: { id?: unknown; result?: unknown; error?: { code: number } };
  try {
    said = JSON.parse(text);
  } catch {
    return `the answer is not JSON: ${text.slice(0, 200)}`;
  }
  if (said.error?.code === -32603) return `an internal error: ${text.slice(0, 200)}`;
  const request = typeof sent === 'object' && sent !== null && !Array.isArray(sent) && 'id' in sent;
  if (!request && said.result !== undefined) return 'carried out without an id';
  return undefined;
}

/** Half of the frames come to us, half come from agents that were given work by us. */
export function fuzzA2a(options: { frames: number; seed: number }): Promise<Fuzzed> {
  return bothDirections(
    (half) => fuzzHttp(protocolOf(), half),
    (half) => fuzzAway(a2aAway, half),
    options,
  );
}
