/**
 * Who may see, stop and approve what, tried from outside at every door of the built gateway. Work belongs to the principal that
 * started it; the proposer of an act does not approve it; a key opens the doors it was made for.
 */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import {
  type Body,
  command,
  DOORS,
  type Door,
  exchange,
  type Received,
  type Served,
  serve,
} from '../support/process/every-door.ts';
import { PROJECT } from '../support/process/project.ts';

let at: Served;
/** One key of each preset, and what people would write without one. */
const keys: Record<string, string> = {};

beforeAll(async () => {
  at = await serve();
  for (const preset of ['a2a-peer', 'ahp-agent', 'mcp-client', 'editor', 'approver', 'admin']) {
    keys[preset] = await at.key(preset, '--for', preset);
  }
  keys['other-peer'] = await at.key('other-peer', '--for', 'a2a-peer');
  keys['answering-peer'] = await at.key('answering-peer', '--for', 'a2a-peer', '--scope', 'approvals:own');
  keys.service = await at.key('service', '--scope', '*');
  keys['other-service'] = await at.key('other-service', '--scope', '*');
  const families = ['tasks:*', 'sessions:*', 'events:*', 'artifacts:*', 'receipts:*', 'approvals:*', 'workspaces:*'];
  keys.restricted = await at.key('restricted', '--scope', ...families);
  keys.outsider = await at.key('outsider', '--scope', ...families);
}, 120_000);

afterAll(async () => {
  await at.close();
});

const ALL = 'status=pending&limit=200';

/** The open question about this address, as an approver sees it. */
async function question(to: string): Promise<Body> {
  const find = async () => {
    const { body } = await at.rest(keys.approver!, 'GET', `/v1/permission-requests?${ALL}`);
    return body.data.find((each: Body) => JSON.stringify(each.action ?? {}).includes(to));
  };
  return await eventually(find);
}

async function started(key: string, text: string): Promise<{ session: string; task: string }> {
  const session = await at.rest(key, 'POST', '/v1/sessions', { workspace_id: 'workspace_default' });
  const { body } = await at.rest(key, 'POST', `/v1/sessions/${session.body.id}/tasks`, { input: { text } });
  return { session: session.body.id, task: body.id };
}

const respond = (key: string, ask: string, body: object = { approved: true }) =>
  at.rest(key, 'POST', `/v1/permission-requests/${ask}/respond`, body);

async function stillOpen(ask: string): Promise<void> {
  expect((await at.rest(keys.approver!, 'GET', `/v1/permission-requests/${ask}`)).body.status).toBe('pending');
}

async function sent(task: string): Promise<readonly Body[]> {
  const { body } = await at.rest(keys.admin!, 'GET', `/v1/events?task_id=${task}&limit=200`);
  return body.data.filter((each: Body) => each.event === 'tool.completed');
}

async function refusals(task: string): Promise<readonly Body[]> {
  const { body } = await at.rest(keys.admin!, 'GET', `/v1/events?task_id=${task}&limit=200`);
  return body.data
    .filter((each: Body) => each.event === 'vendor.tollbridge.answer_refused')
    .map((e: Body) => e.payload);
}

describe('a key opens the doors it was made for', () => {
  const OPENS: Readonly<Record<string, readonly Door[]>> = {
    'a2a-peer': ['a2a'],
    'ahp-agent': ['ahp'],
    'mcp-client': ['mcp'],
    editor: ['acp'],
    approver: ['harn'],
    admin: DOORS,
  };
  /** Another one each time: failures of one key are slowed down wherever they come from. */
  let tried = 0;
  const wrong = () => `tbk_${String(++tried).padStart(16, '0')}_${'a'.repeat(43)}`;
  const cases = Object.entries(OPENS).flatMap(([preset, doors]) =>
    DOORS.map((door) => [preset, door, doors.includes(door)] as const),
  );

  test.each(cases)('%s at %s: %s', async (preset, door, opens) => {
    const received = await at.greet(door, keys[preset]!);
    if (opens) {
      expect([200, 404], JSON.stringify(received)).toContain(received.status);
      expect(JSON.stringify(received.body)).not.toMatch(/not valid|AUTH_KEY|does not have the scope/);
      return;
    }
    // In the very words for a key that never was.
    const nobody = await at.greet(door, wrong());
    expect(nobody.status).toBe(401);
    expect(nameless(received)).toEqual(nameless(nobody));
  });

  test('the documented keys are these presets', () => {
    const pages: Readonly<Record<string, string>> = {
      'a2a.md': '--for a2a-peer',
      'ahp.md': '--for ahp-agent',
      'mcp.md': '--for mcp-client',
      'acp.md': '--for editor',
      'approvals.md': '--for approver',
    };
    for (const [page, words] of Object.entries(pages)) {
      expect(readFileSync(join(PROJECT, 'docs', page), 'utf8'), page).toContain(words);
    }
  });

  test('the list says what each was made for, where it counts and what it sees', async () => {
    const { out } = await command(['--data', at.data, 'keys', 'list']);
    expect(out).toMatch(/a2a-peer \(a2a-peer\): service a2a-peer, may .*, at a2a, sees its own work/);
    expect(out).toMatch(/approver \(approver\): person approver, may .*, at harn, sees others' work/);
    expect(out).toMatch(/admin \(admin\): service admin, may \*, at every door, sees others' work/);
    for (const key of Object.values(keys)) expect(out).not.toContain(key!.slice(-24));
  });
});

/** Without what names the request. */
function nameless({ status, body }: Received): string {
  return `${status} ${JSON.stringify(body).replace(/"(correlation|trace|request)_id":"[^"]*"/g, '')}`;
}

describe('work of another principal is not there', () => {
  let mine: { session: string; task: string };
  let ask: Body;
  let receipt: string;
  beforeAll(async () => {
    mine = await started(keys.restricted!, 'send hello to mine@example.org');
    ask = await question('mine@example.org');
    const done = await started(keys.restricted!, 'hello');
    const receiptOf = async () =>
      (await at.rest(keys.restricted!, 'GET', `/v1/tasks/${done.task}/receipts`)).body.data?.[0]?.id;
    receipt = await eventually(receiptOf);
  }, 60_000);

  const paths = (): readonly (readonly [string, string, object?])[] => [
    ['GET', `/v1/tasks/${mine.task}`],
    ['GET', `/v1/tasks/${mine.task}/events`],
    ['GET', `/v1/tasks/${mine.task}/stream`],
    ['GET', `/v1/tasks/${mine.task}/receipts`],
    ['GET', `/v1/tasks/${mine.task}/permission-requests`],
    ['GET', `/v1/sessions/${mine.session}`],
    ['GET', `/v1/sessions/${mine.session}/messages`],
    ['GET', `/v1/receipts/${receipt}`],
    ['GET', `/v1/permission-requests/${ask.id}`],
    ['POST', `/v1/tasks/${mine.task}/cancel`, {}],
    ['POST', `/v1/tasks/${mine.task}/replay`, {}],
    ['POST', `/v1/sessions/${mine.session}/tasks`, { input: { text: 'hello' } }],
    ['POST', `/v1/sessions/${mine.session}/fork`, {}],
    ['POST', `/v1/permission-requests/${ask.id}/respond`, { approved: true }],
    ['POST', `/v1/permission-requests/${ask.id}/respond`, { approved: false }],
  ];

  test('REST: read, followed, stopped, forked, replayed, answered: as if it had never been', async () => {
    for (const [method, path, body] of paths()) {
      const hidden = await at.rest(keys.outsider!, method, path, body);
      const gone = path.replace(/(task|session|receipt|ask)_\w+/, (id) => `${id.slice(0, -4)}ZZZZ`);
      const absent = await at.rest(keys.outsider!, method, gone, body);
      const quiet = (received: Received) => nameless(received).replace(/(task|session|receipt|ask)_\w+/g, 'ID');
      expect(quiet(hidden), path).toEqual(quiet(absent));
      // Lists that are about something hidden are empty or absent; nothing else is 200.
      if (hidden.status === 200) expect(hidden.body.data, path).toEqual([]);
      else expect(hidden.status, path).toBe(404);
    }
    await stillOpen(ask.id);
  });

  test('REST: lists and the event log hold nothing of it', async () => {
    for (const path of [
      '/v1/tasks',
      '/v1/sessions',
      '/v1/receipts',
      '/v1/permission-requests',
      '/v1/events',
      '/v1/artifacts',
    ]) {
      const { status, body } = await at.rest(keys.outsider!, 'GET', `${path}?limit=200`);
      expect([path, status, body.data]).toEqual([path, 200, []]);
      const seen = (await at.rest(keys.restricted!, 'GET', `${path}?limit=200`)).body.data;
      if (path !== '/v1/artifacts') expect(seen.length, path).toBeGreaterThan(0);
      expect(JSON.stringify(seen), path).not.toContain('outsider');
    }
  });

  test('A2A 1.0 and 0.3: a peer reads, stops and answers its own tasks and no others', async () => {
    const message = { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'send hello to peer@example.org' }] };
    const made = await at.a2a(keys['a2a-peer']!, 'SendMessage', {
      message,
      configuration: { returnImmediately: true },
    });
    const { id: taskId } = made.body.result.task;
    const asked = await question('peer@example.org');
    expect((await at.a2a(keys['a2a-peer']!, 'GetTask', { id: taskId })).body.result.id).toBe(taskId);
    const answer = { askId: asked.id, approved: true };
    for (const [version, calls] of [
      [
        '1.0',
        [
          ['GetTask', { id: taskId }],
          ['CancelTask', { id: taskId }],
          ['SubscribeToTask', { id: taskId }],
          ['SendMessage', { message: { ...message, messageId: 'm2', taskId, parts: [{ data: answer }] } }],
        ],
      ],
      [
        '0.3',
        [
          ['tasks/get', { id: taskId }],
          ['tasks/cancel', { id: taskId }],
          [
            'message/send',
            {
              message: {
                kind: 'message',
                messageId: 'm3',
                role: 'user',
                taskId,
                parts: [{ kind: 'data', data: answer }],
              },
            },
          ],
        ],
      ],
    ] as const) {
      for (const [method, params] of calls) {
        const hidden = await at.a2a(keys['other-peer']!, method, params, version);
        const gone = JSON.parse(JSON.stringify(params).replaceAll(taskId, `${taskId.slice(0, -4)}ZZZZ`));
        const absent = await at.a2a(keys['other-peer']!, method, gone, version);
        expect(hidden.body.error?.code, `${version} ${method} ${JSON.stringify(hidden)}`).toBe(-32001);
        expect(hidden.body.error.message.replace(/task_\w+/, 'T')).toBe(
          absent.body.error.message.replace(/task_\w+/, 'T'),
        );
      }
    }
    expect((await at.a2a(keys['other-peer']!, 'ListTasks', {})).body.result.tasks).toEqual([]);
    await stillOpen(asked.id);
    // Nor with the native door of the same port, which the key of a peer does not open.
    for (const path of [`/v1/tasks/${taskId}`, '/v1/tasks', '/v1/permission-requests', '/v1/events']) {
      expect((await at.rest(keys['a2a-peer']!, 'GET', path)).status, path).toBe(401);
    }
    expect((await respond(keys['a2a-peer']!, asked.id)).status).toBe(401);
  });

  test('runs: another run is not found', async () => {
    const { body } = await at.runs(keys.restricted!, 'POST', '/v1/runs', { input: { text: 'hello' }, metadata: {} });
    expect((await at.runs(keys.restricted!, 'GET', `/v1/runs/${body.id}`)).status).toBe(200);
    for (const [method, path, more] of [
      ['GET', `/v1/runs/${body.id}`],
      ['GET', `/v1/runs/${body.id}/events`],
      ['POST', `/v1/runs/${body.id}/cancel`],
      ['POST', `/v1/runs/${body.id}/signal`, { action: 'approve' }],
    ] as const) {
      expect((await at.runs(keys.outsider!, method, path, more)).status, path).toBe(404);
    }
  });
});

describe('the proposer of an act does not approve it', () => {
  test.each(['the printed token', 'service', 'admin'])('by REST: %s, as an answer or as a message', async (who) => {
    const key = who === 'the printed token' ? at.token : keys[who]!;
    const to = `self-${who.replaceAll(' ', '-')}@example.org`;
    const { task } = await started(key, `send hello to ${to}`);
    const { id } = await question(to);
    expect(await respond(key, id)).toMatchObject({ status: 403, body: { error: { code: 'permission_denied' } } });
    const confirmed = await at.rest(key, 'POST', `/v1/tasks/${task}/messages`, {
      kind: 'tool_confirmation',
      message: {
        role: 'user',
        parts: [{ type: 'json', value: { request_id: id, approved: true }, visibility: 'public' }],
      },
    });
    expect(confirmed.status).toBe(403);
    await stillOpen(id);
    expect(await sent(task)).toEqual([]);
    expect(await refusals(task)).toMatchObject([{ ask_id: id, code: 'own_work' }]);
    expect((await respond(keys.approver!, id)).body.status).toBe('approved');
    await expect.poll(() => sent(task), { timeout: 20_000 }).toHaveLength(1);
  });

  test('by A2A: a peer says yes to what an agent does for it only where its key was made to', async () => {
    for (const [peer, may] of [
      ['a2a-peer', false],
      ['answering-peer', true],
    ] as const) {
      const to = `${peer}-self@example.org`;
      const message = { messageId: `s-${peer}`, role: 'ROLE_USER', parts: [{ text: `send hello to ${to}` }] };
      const made = await at.a2a(keys[peer]!, 'SendMessage', { message, configuration: { returnImmediately: true } });
      const { id: taskId } = made.body.result.task;
      const { id } = await question(to);
      const yes = {
        messageId: `y-${peer}`,
        role: 'ROLE_USER',
        taskId,
        parts: [{ data: { askId: id, approved: true } }],
      };
      const received = await at.a2a(keys[peer]!, 'SendMessage', {
        message: yes,
        configuration: { returnImmediately: true },
      });
      if (may) {
        expect(received.body.error, JSON.stringify(received.body)).toBeUndefined();
        await expect.poll(() => sent(taskId), { timeout: 20_000 }).toHaveLength(1);
      } else {
        expect(received.body.error, JSON.stringify(received.body)).toBeDefined();
        await stillOpen(id);
        expect(await sent(taskId)).toEqual([]);
        expect((await respond(keys.approver!, id, { approved: false })).status).toBe(200);
      }
    }
  });

  test('by runs: the service that started a run does not approve its acts', async () => {
    const to = 'run-self@example.org';
    const input = { text: `send hello to ${to}` };
    const { body } = await at.runs(keys.service!, 'POST', '/v1/runs', { input, metadata: {} });
    const { id } = await question(to);
    const received = await at.runs(keys.service!, 'POST', `/v1/runs/${body.id}/signal`, { action: 'approve' });
    expect(received.status, JSON.stringify(received.body)).toBe(403);
    await stillOpen(id);
    expect(
      (await at.runs(keys['other-service']!, 'POST', `/v1/runs/${body.id}/signal`, { action: 'approve' })).status,
    ).toBeLessThan(300);
  });

  test('by MCP: a program gets no form to fill in, and the model no tool to say yes with', async () => {
    const to = 'mcp-self@example.org';
    const call = at.mcp(
      keys.service!,
      'tools/call',
      { name: 'demo__send_mail', arguments: { to, text: 'x' } },
      'demo__send_mail',
    );
    const { id } = await question(to);
    expect(await respond(keys.service!, id)).toMatchObject({
      status: 403,
      body: { error: { details: { code: 'proposer' } } },
    });
    await stillOpen(id);
    expect((await respond(keys['other-service']!, id, { approved: false, reason: 'no' })).status).toBe(200);
    expect((await call).body.result).toMatchObject({ isError: true });
  });

  test('by AHP: the key of a supervised agent opens nothing else, and a key for everything is still the proposer', async () => {
    const to = 'ahp-self@example.org';
    const held = at.ahp(keys.service!, 'pre_action', { tool: 'send_mail', arguments: { to } }, 'self');
    const { id } = await question(to);
    expect(await respond(keys.service!, id)).toMatchObject({
      status: 403,
      body: { error: { details: { code: 'proposer' } } },
    });
    expect((await respond(keys['ahp-agent']!, id)).status).toBe(401);
    await stillOpen(id);
    expect((await respond(keys.approver!, id, { approved: false, reason: 'no' })).status).toBe(200);
    expect((await held).body.result.decision).toBe('block');
  });

  test('an answer counts once, for the principal that gave it (H35)', async () => {
    const to = 'once@example.org';
    const { task } = await started(keys.service!, `send hello to ${to}`);
    const { id } = await question(to);
    const all = await Promise.all([
      respond(keys.approver!, id),
      respond(keys['other-service']!, id),
      respond(keys.service!, id),
      respond(keys.outsider!, id),
    ]);
    expect(all.map(({ status }) => status).slice(2)).toEqual([403, 404]);
    expect(
      all
        .map(({ status }) => status)
        .slice(0, 2)
        .toSorted(),
    ).toEqual([200, 409]);
    await expect.poll(() => sent(task), { timeout: 20_000 }).toHaveLength(1);
    expect((await respond(keys.approver!, id)).status).toBe(409);
    expect(await sent(task)).toHaveLength(1);
  });
});

describe('failed logins', () => {
  const jwt = (claims: object) =>
    `${[{ alg: 'none' }, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')}.`;

  test.each(DOORS)('%s: no wrong credential is accepted (H5)', async (door) => {
    const altered = `${keys.admin!.slice(0, -2)}${keys.admin!.endsWith('AA') ? 'BB' : 'AA'}`;
    for (const token of [altered, 'x', 'undefined', jwt({ sub: 'local', scope: '*' }), `${at.token}x`]) {
      const { status, body } = await at.greet(door, token);
      expect([door, status]).toEqual([door, expect.toSatisfy((code: number) => code === 401 || code === 429)]);
      expect(JSON.stringify(body)).not.toContain(`"${token}`);
    }
  });

  test('are answered later and later, while a good key is let in at once, and are events without any token', async () => {
    const get = (key: string) =>
      exchange(
        `${at.url}/v1/workspaces`,
        {
          method: 'GET',
          headers: { authorization: `Bearer ${key}`, 'harn-agents-protocol-version': 'agents-protocol-2026-04-25' },
        },
        '127.0.0.1',
      );
    const wrong = () => get(`tbk_1111111111111111_${'b'.repeat(43)}`);
    const took = async (call: () => Promise<Received>) => {
      const from = performance.now();
      const { status } = await call();
      return { ms: performance.now() - from, status };
    };
    for (let n = 0; n < 6; n++) await wrong();
    const slow = wrong();
    // From the very same address.
    const good = await took(() => get(keys.admin!));
    expect(good.status).toBe(200);
    const late = await took(wrong);
    expect(late.ms).toBeGreaterThan(700);
    expect(good.ms).toBeLessThan(late.ms);
    await slow;
    const flood = await Promise.all(Array.from({ length: 40 }, wrong));
    expect(flood.every(({ status }) => status === 401 || status === 429)).toBe(true);
    expect(flood.some(({ status }) => status === 429)).toBe(true);
    const { out } = await command(['--data', at.data, 'log', '--json']);
    const events = out
      .split('\n')
      .filter((line) => line.includes('vendor.tollbridge.login_failed'))
      .map((line) => JSON.parse(line));
    // More than a hundred failures from all over; a handful of events.
    expect(events.length).toBeGreaterThan(0);
    expect(events.length).toBeLessThan(60);
    expect(events[0].payload).toMatchObject({ address: expect.stringMatching(/^127\./), attempts: 1 });
    expect(JSON.stringify(events)).not.toContain('bbbbbbbb');
    expect(at.alive()).toBe(true);
  });
});
