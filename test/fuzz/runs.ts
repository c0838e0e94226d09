/** Requests of the runs API, with routes, verbs and bodies made wrong, to an agent whose one act goes through the gate. */
import { settingsOf } from '../../adapters/runs/config.ts';
import { runsDoor } from '../../adapters/runs/server/door.ts';
import type { JsonObject } from '../../src/model/schema.ts';
import { type Fuzzed, TOKEN } from './gateway.ts';
import { fuzzHttp, type Protocol } from './http.ts';
import { bothDirections, fuzzAway } from './peers/remote.ts';
import { runsAway } from './peers/runs.ts';

const VERBS = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'];

const PROTOCOL: Protocol = {
  headers: { authorization: `Bearer ${TOKEN}:${TOKEN}` },
  open: async ({ deps, runtime, workspace }) => await runsDoor(settingsOf({ workspace }), deps).open(runtime.bridge),
  async prepare(send) {
    const create = (word: string): JsonObject => ({ input: { user_query: word }, metadata: {} });
    const key = (name: string) => ({ 'idempotency-key': `${name}-00000000` });
    const body = Buffer.from(JSON.stringify(create('yes')));
    const first = await send({ method: 'POST', path: '/v1/runs', body, headers: key('first') });
    const { run_id = 'none', id = run_id } = JSON.parse(first.text) as { run_id?: string; id?: string };
    const ROUTES: readonly { readonly path: string; readonly body?: JsonObject }[] = [
      { path: '/v1/runs', body: create('yes') },
      { path: '/v1/runs', body: create('yes') },
      { path: '/v1/runs', body: create('no') },
      { path: '/v1/runs', body: create('other') },
      { path: `/v1/runs/${id}` },
      { path: `/v1/runs/${id}/cancel`, body: {} },
      { path: `/v1/runs/${id}/retry`, body: {} },
      { path: `/v1/runs/${id}/resume`, body: {} },
      { path: `/v1/runs/${id}/signal`, body: { signal_type: 'approval', payload: { approved: true } } },
      { path: `/v1/runs/${id}/events` },
      { path: '/v1/runs/__proto__' },
      { path: '/v1/runs/%2e%2e/signal', body: {} },
      { path: '/v1/memory/constructor' },
      { path: '/v1/usage' },
    ];
    return ({ frame, mutation }, count) => {
      const route = ROUTES[frame % ROUTES.length] as (typeof ROUTES)[number];
      const usual = route.body ? 'POST' : 'GET';
      const method = frame % 7 === 0 ? (VERBS[frame % VERBS.length] as string) : usual;
      const sent = method === 'GET' || method === 'OPTIONS' ? {} : { body: mutation(route.body ?? {}) };
      return { method, path: route.path, headers: key(`f${count}`), ...sent };
    };
  },
};

/** Half of the frames come to us, half come from remotes that were given work by us. */
export function fuzzRuns(options: { frames: number; seed: number }): Promise<Fuzzed> {
  return bothDirections(
    (half) => fuzzHttp(PROTOCOL, half),
    (half) => fuzzAway(runsAway, half),
    options,
  );
}
