import { expect, test } from 'vitest';
import { scriptedAgent } from '../../support/gateway/agents.ts';
import { type Body, type Door, openDoor, text } from '../../support/harn/gateway.ts';
import { dice, fuzzer } from '../../support/wire/schema-fuzz.ts';

/** `FUZZ_REQUESTS=20000 FUZZ_SEED=7 npx vitest run test/doors/harn/fuzz` for a long night. */
const REQUESTS = Number(process.env.FUZZ_REQUESTS ?? 500);
const SEED = Number(process.env.FUZZ_SEED ?? 20260425);

const CANARY = { ana: 'canary-of-ana', acme: 'canary-of-acme' } as const;

/** A tenant's belongings, each with its canary somewhere in it. */
async function furnish(door: Door, who: keyof typeof CANARY): Promise<string[]> {
  const mark = CANARY[who];
  const as = { authorization: `Bearer ${who}` };
  const make = async (path: string, body: object) => (await door.call('POST', path, body, as)).body.id as string;
  const workspace = await make('/v1/workspaces', { name: mark, root: `harn://${mark}`, metadata: { mark } });
  const session = await make('/v1/sessions', {
    workspace_id: workspace,
    metadata: { mark },
    initial_messages: [text(mark)],
  });
  const task = await make(`/v1/sessions/${session}/tasks`, { input: text(mark), metadata: { mark } });
  await door.at.until(task);
  const { body } = await door.call('GET', `/v1/tasks/${task}`, undefined, as);
  const events = (await door.call('GET', `/v1/tasks/${task}/events`, undefined, as)).body.data;
  return [
    workspace,
    session,
    task,
    body.receipt_id,
    body.outcome_id,
    events[0].id,
    events.at(-1).id,
    `${workspace}.0`,
    await make(`/v1/sessions/${session}/branches`, { kind: 'session', base_ref: mark }),
    await make('/v1/artifacts', {
      kind: 'log',
      mime_type: 'text/plain',
      visibility: 'public',
      workspace_id: workspace,
      metadata: { mark },
    }),
    await make('/v1/memories', { scope: 'workspace', owner_id: workspace, content: mark, provenance: {} }),
    await make('/v1/vaults', { provider: mark, capabilities: [], workspace_id: workspace }),
    await make('/v1/connectors', { provider: mark, workspace_id: workspace, event_kinds: [] }),
  ];
}

test(`${REQUESTS} requests made from our own document: no failure of ours, every refusal in its envelope, nothing of another tenant`, async () => {
  const errors: unknown[] = [];
  const door = await openDoor({
    agents: [scriptedAgent(async () => undefined)],
    logger: { info() {}, warn() {}, error: (fields) => errors.push(fields) },
  });
  const { body: document } = await door.call('GET', '/openapi.json');
  const operations = Object.entries(document.paths as Record<string, Body>).flatMap(([path, methods]) =>
    Object.entries(methods as Record<string, Body>).map(([method, operation]) => ({ path, method, operation })),
  );
  const own = { ana: await furnish(door, 'ana'), acme: await furnish(door, 'acme') };
  const ids = [...own.ana, ...own.acme, 'nothing', 'task_0', 'stream', '..', '.', '-'];
  const d = dice(SEED);
  const resolve = (ref: string) =>
    ref
      .slice(2)
      .split('/')
      .reduce((at: Body, name) => at[name], document);
  const fuzz = fuzzer(d, ids, resolve);
  const seen = new Map<number, number>();

  async function one(): Promise<void> {
    const { path, method, operation } = d.pick(operations);
    const who = d.pick(['ana', 'acme'] as const);
    const target = path.replace(/\{(\w+)\}/g, (_, name) =>
      encodeURIComponent(d.chance(0.9) ? fuzz.id(name) : fuzz.string()),
    );
    const query = new URLSearchParams();
    for (const parameter of operation.parameters.map((p: Body) => (p.$ref ? resolve(p.$ref) : p))) {
      if (parameter.in !== 'query' || d.chance(0.5)) continue;
      const input = d.chance(0.5) ? fuzz.value(parameter.schema) : d.pick([...ids, fuzz.string()]);
      query.append(parameter.name, String(input));
    }
    const content = operation.requestBody?.content ?? {};
    const schema = content['application/json']?.schema;
    const made = schema ? fuzz.value(schema) : undefined;
    const json = schema && d.chance(0.95) ? JSON.stringify(d.chance(0.6) ? made : fuzz.spoil(made)) : undefined;
    const body = content['application/octet-stream'] ? fuzz.string() : d.chance(0.02) ? fuzz.string() : json;
    const headers = door.headers({
      authorization: `Bearer ${who}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(d.chance(0.1) && { 'idempotency-key': d.pick(['k', 'k2', 'k'.repeat(300)]) }),
      ...(d.chance(0.1) && { 'last-event-id': d.pick(ids) }),
    });
    const hasBody = body !== undefined && method !== 'get';
    const stop = new AbortController();
    const url = `${door.url}${target}${query.size > 0 ? `?${query}` : ''}`;
    const answer = await fetch(url, {
      method: method.toUpperCase(),
      headers,
      signal: stop.signal,
      ...(hasBody && { body: body as string }),
    });
    const about = `${method.toUpperCase()} ${url.slice(door.url.length)} ${String(hasBody ? body : '').slice(0, 400)}`;
    seen.set(answer.status, (seen.get(answer.status) ?? 0) + 1);
    if (answer.headers.get('content-type') === 'text/event-stream') {
      stop.abort();
      return;
    }
    const said = await answer.text();
    expect(answer.status < 500 || answer.status === 501, `${answer.status} for ${about}: ${said.slice(0, 300)}`).toBe(
      true,
    );
    expect(answer.headers.get('x-request-id')).toMatch(/^req_/);
    if (answer.status >= 400 && answer.status !== 416) {
      const { error } = JSON.parse(said);
      expect(Object.keys(error).toSorted(), about).toEqual([
        'code',
        'details',
        'message',
        'param',
        'request_id',
        'type',
      ]);
      expect(error.request_id).toBe(answer.headers.get('x-request-id'));
    }
    const other = who === 'ana' ? CANARY.acme : CANARY.ana;
    expect(said.includes(other), `${who} was shown ${other} by ${about}`).toBe(false);
    expect(said, about).not.toMatch(/node_modules|\.ts:\d+|at async /);
  }

  for (let sent = 0; sent < REQUESTS; sent += 8) {
    await Promise.all(Array.from({ length: Math.min(8, REQUESTS - sent) }, one));
  }
  expect(errors).toEqual([]);
  // A run that is refused everywhere, or nowhere, would prove nothing.
  for (const status of [200, 400, 404]) expect(seen.get(status) ?? 0, String(status)).toBeGreaterThan(0);
  expect((await door.call('GET', '/health/ready')).status).toBe(200);
}, 3_600_000);
