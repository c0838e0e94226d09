/** Private inputs of a session: kept in memory, used by the agent, passed on to a remote Harness, in no event and no answer. */
import { describe, expect, test } from 'vitest';
import { fakeClock } from '../../support/gateway/clock.ts';
import { type Door, type DoorOptions, expectFault, openDoor, text } from '../../support/harn/gateway.ts';
import { demoAgent, remoteAgent } from '../../support/harn/two-gateways.ts';

const newer = { 'harn-agents-protocol-version': 'agents-protocol-2026-10-11' };
const SECRET = 'opaque-canary-7781';
const put = (name: string, value = SECRET, more: object = {}) => ({ kind: 'put', spec: { name }, value, ...more });

async function open(options: DoorOptions = {}) {
  const door = await openDoor({ agents: [demoAgent()], ...options });
  const { session } = await door.room();
  const command = (body: object, headers: Record<string, string> = newer, id = session) =>
    door.call('POST', `/v1/sessions/${id}/inputs`, body, headers);
  return { ...door, session, command };
}

async function answered(door: Pick<Door, 'call' | 'at'>, session: string, words: string): Promise<string> {
  const { body } = await door.call('POST', `/v1/sessions/${session}/tasks`, { input: text(words) }, newer);
  await door.at.until(body.id);
  return JSON.stringify((await door.call('GET', `/v1/sessions/${session}/messages`, undefined, newer)).body);
}

describe('private inputs', () => {
  test('the agent uses an input, and the log has its name only', async () => {
    const door = await open();
    const added = await door.command(put('SERVICE_KEY'));
    expect(added.body).toEqual({
      input: { name: 'SERVICE_KEY', kind: 'secret', lifetime: { kind: 'session' }, usage: { kind: 'session_tools' } },
    });
    expect(await answered(door, door.session, 'check input SERVICE_KEY')).toContain('I can use the input SERVICE_KEY.');
    expect((await door.command({ kind: 'remove', name: 'SERVICE_KEY' })).body).toEqual({ removed: true });
    expect((await door.command({ kind: 'remove', name: 'SERVICE_KEY' })).body).toEqual({ removed: false });
    expect(await answered(door, door.session, 'check input SERVICE_KEY')).toContain('I have no input SERVICE_KEY.');
    // Removed, and still kept out of everything that is written.
    await answered(door, door.session, `write note ${SECRET}`);
    const log = JSON.stringify(await door.at.all());
    expect(log).toContain('"name":"SERVICE_KEY"');
    expect(log).not.toContain(SECRET);
  });

  test('a variable is shown with its value, a secret without; the list is sorted', async () => {
    const { command } = await open();
    await command(put('Z_KEY'));
    await command({ kind: 'put', spec: { name: 'A_FLAG', kind: 'variable' }, value: 'on' });
    const { body } = await command({ kind: 'list' });
    expect(body.inputs.map(({ name, value }: { name: string; value?: string }) => [name, value])).toEqual([
      ['A_FLAG', 'on'],
      ['Z_KEY', undefined],
    ]);
  });

  test('an input expires, and is replaced only on request', async () => {
    const clock = fakeClock();
    const { command } = await open({ clock });
    const until = { kind: 'until', unix_ms: Date.parse(clock.now()) + 1000 };
    expectFault(
      await command({ ...put('K'), spec: { name: 'K', lifetime: { kind: 'until', unix_ms: 1 } } }),
      400,
      'invalid_request',
      'request_error',
    );
    expect((await command({ ...put('K'), spec: { name: 'K', lifetime: until } })).status).toBe(200);
    expect((await command(put('K'))).status).toBe(409);
    expect(
      (await command(put('K', 'another-canary-1', { replace: true, spec: { name: 'K', lifetime: until } }))).status,
    ).toBe(200);
    clock.advance(1001);
    expect((await command({ kind: 'list' })).body).toEqual({ inputs: [] });
  });

  test('a snapshot replaces the inputs of its host only, and an older one brings nothing back', async () => {
    const { command } = await open();
    const sync = (revision: number, ...names: string[]) => ({
      kind: 'sync',
      snapshot: {
        sourceId: 'desktop',
        revision,
        inputs: names.map((name) => ({ spec: { name }, value: `${SECRET}-${name}` })),
        redactions: ['an-old-canary-55'],
      },
    });
    await command(put('OWN'));
    const names = (body: { inputs: { name: string }[] }) => body.inputs.map(({ name }) => name);
    const first = await command(sync(3, 'A', 'B'));
    expect([first.body.applied, names(first.body)]).toEqual([true, ['A', 'B', 'OWN']]);
    expect((await command(sync(3, 'C'))).body.applied).toBe(false);
    expect((await command(sync(2, 'C'))).status).toBe(409);
    expect(names((await command(sync(4, 'B'))).body)).toEqual(['B', 'OWN']);
    // Invalid transfers change nothing.
    expect((await command(sync(5, 'A', 'not a name'))).status).toBe(400);
    expect((await command(sync(5, 'OWN'))).status).toBe(409);
    expect(names((await command({ kind: 'list' })).body)).toEqual(['B', 'OWN']);
  });

  test.each([
    ['a name with a space', put('not a name')],
    ['a name that is too long', put('N'.repeat(129))],
    ['an empty secret', put('K', '')],
    ['a secret that redaction cannot recognise', put('K', 'abc')],
    ['a value with NUL', put('K', 'abcdef\0ghi')],
    ['a value over 64 KiB', put('K', 'v'.repeat(65_537))],
    [
      'a website over http',
      { ...put('K'), spec: { name: 'K', usage: { kind: 'websites', origins: ['http://a.test'] } } },
    ],
    [
      'a website with a path',
      { ...put('K'), spec: { name: 'K', usage: { kind: 'websites', origins: ['https://a.test/x'] } } },
    ],
    ['no website', { ...put('K'), spec: { name: 'K', usage: { kind: 'websites', origins: [] } } }],
    ['an unknown member', { ...put('K'), note: 1 }],
    ['an unknown member of the spec', { ...put('K'), spec: { name: 'K', scope: 'all' } }],
    ['an unknown command', { kind: 'get', name: 'K' }],
    ['no command', {}],
  ])('%s is refused, and nothing of it is kept', async (_, body) => {
    const { command, at } = await open();
    const answer = await command(body);
    expectFault(answer, 400, 'invalid_request', 'request_error');
    expect(JSON.stringify(answer.body)).not.toContain(SECRET);
    expect((await command({ kind: 'list' })).body).toEqual({ inputs: [] });
    expect(JSON.stringify(await at.all())).not.toContain(SECRET);
  });

  test('an input for websites is not given to tools', async () => {
    const door = await open();
    const usage = { kind: 'websites', origins: ['https://b.test', 'https://a.test:443', 'https://b.test'] };
    const { body } = await door.command({ ...put('K'), spec: { name: 'K', usage } });
    expect(body.input.usage.origins).toEqual(['https://a.test', 'https://b.test']);
    expect(await answered(door, door.session, 'check input K')).toContain('I have no input K.');
  });

  test('only the owner with the scope for writing reaches them, and a closed session has none', async () => {
    const people = {
      other: { id: 'other', kind: 'service' as const, scopes: ['sessions:read', 'sessions:write'] },
      reader: { id: 'reader', kind: 'service' as const, scopes: ['sessions:read', 'others:read'] },
    };
    const { command, call, session } = await open({ people });
    await command(put('K'));
    const as = (token: string) => ({ ...newer, authorization: `Bearer ${token}` });
    expect((await command({ kind: 'list' }, as('other'))).status).toBe(404);
    expect((await command({ kind: 'list' }, as('reader'))).status).toBe(403);
    const fork = await call('POST', `/v1/sessions/${session}/fork`, {}, newer);
    expect((await command({ kind: 'list' }, newer, fork.body.id)).body).toEqual({ inputs: [] });
    await call('POST', `/v1/sessions/${session}/close`, {}, newer);
    expect((await command({ kind: 'list' })).status).toBe(409);
  });

  test('a gateway whose agents cannot use them says so', async () => {
    const agent = demoAgent();
    const { inputs: _, ...abilities } = agent.abilities;
    const { command } = await open({ agents: [{ ...agent, abilities }] });
    const answer = await command(put('K'));
    expectFault(answer, 400, 'invalid_request', 'request_error');
    expect(answer.body.error.message).toContain('no agent of this gateway takes private inputs (demo)');
  });

  test('a remote Harness gets them before the work and loses them with their removal', async () => {
    const far = await openDoor({ agents: [demoAgent()] });
    const near = await open({ agents: [remoteAgent(far.url)] });
    await near.command(put('SERVICE_KEY'));
    expect(await answered(near, near.session, 'check input SERVICE_KEY')).toContain('I can use the input SERVICE_KEY.');
    expect((await near.command({ kind: 'remove', name: 'SERVICE_KEY' })).status).toBe(200);
    expect(await answered(near, near.session, 'check input SERVICE_KEY')).toContain('I have no input SERVICE_KEY.');
    for (const { at } of [near, far]) expect(JSON.stringify(await at.all())).not.toContain(SECRET);
    await far.close();
    const after = await near.command(put('SERVICE_KEY'));
    expect(after.status).toBe(502);
    expect(JSON.stringify(after.body)).not.toContain(SECRET);
  });
});
