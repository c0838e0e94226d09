/** The Agents Protocol against the built process, with an instrumented agent behind it: frames and bodies no client should send. */
import { describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { type Body, PROTOCOL_VERSION_HEADERS, room } from '../../support/process/native-session.ts';
import { type Serving, serving } from '../../support/process/served.ts';

const text = (words: string) => ({ role: 'user', parts: [{ type: 'text', text: words, visibility: 'public' }] });

async function unharmed(gateway: Serving, session: string): Promise<void> {
  expect(gateway.input()).toEqual([]);
  const made = await gateway.send(`/v1/sessions/${session}/tasks`, {
    method: 'POST',
    body: { input: text('still here'), agent: 'recorder' },
  });
  expect(made.status).toBe(202);
  await expect.poll(() => gateway.input(), { timeout: 10_000 }).toEqual(['still here']);
}

describe('frames of the Agents Protocol', { timeout: 60_000 }, () => {
  test('a command without an id, a frame of the gateway, and an unknown frame are refused on a socket', async () => {
    const gateway = await serving();
    const session = await room(gateway);
    const at = `${gateway.url.replace('http', 'ws')}/v1/sessions/${session}/events/stream`;
    const headers = { authorization: `Bearer ${gateway.token}`, ...PROTOCOL_VERSION_HEADERS };
    const socket = new WebSocket(at, { headers });
    const received: Body[] = [];
    socket.on('message', (data) => received.push(JSON.parse(String(data))));
    await new Promise<void>((resolve, reject) => socket.once('open', resolve).once('error', reject));
    const errors = () =>
      received.filter(({ type }) => type === 'error').map(({ id, error }) => [id, error.param, error.message]);
    const submit = { type: 'task.submit', input: text('go'), agent: 'recorder' };
    const frames = [
      JSON.stringify(submit),
      JSON.stringify({ ...submit, type: 'event', id: 'a' }),
      JSON.stringify({ ...submit, type: '__proto__', id: 'b' }),
      JSON.stringify([{ ...submit, id: 'c' }]),
      `{"type":"ping","type":"task.submit","id":"d","input":${JSON.stringify(text('go'))}}`,
    ];
    for (const frame of frames) socket.send(frame);
    await expect.poll(() => errors().length).toBe(frames.length);
    expect(errors()).toEqual([
      [undefined, 'id', 'task.submit is a request and needs an id; as a notification it is not passed on'],
      ['a', 'type', 'event is sent by the gateway, not by the client'],
      ['b', 'type', 'there is no frame of this type'],
      [undefined, null, 'a frame is a JSON object'],
      [undefined, null, 'a name appears twice in one object'],
    ]);
    socket.send(JSON.stringify({ type: 'ping', t: 1 }));
    await expect.poll(() => received.some(({ type }) => type === 'pong')).toBe(true);
    socket.terminate();
    await unharmed(gateway, session);
  });

  test('a body that can be read in two ways, or by some readers only, starts nothing', async () => {
    const gateway = await serving();
    const session = await room(gateway);
    const input = JSON.stringify(text('go'));
    const bodies = [
      `{"input":${input},"input":${input}}`,
      `{"input":${input},"\\u0069nput":${input}}`,
      `\ufeff{"input":${input}}`,
      `{"input":${input}}\u0000`,
      `{"input":${input},"agent":"demo","agent":"recorder"}`,
      `[{"input":${input}}]`,
      `{"input":${input}}{"input":${input}}`,
      `{'input':${input}}`,
      `{"input":${input},}`,
    ];
    for (const body of bodies) {
      const answer = await gateway.send(`/v1/sessions/${session}/tasks`, { method: 'POST', body });
      expect([body, answer.status]).toEqual([body, 400]);
    }
    await unharmed(gateway, session);
  });

  test('a method without a row in the table is not served, whatever header asks for another one', async () => {
    const gateway = await serving();
    const session = await room(gateway);
    const body = { input: text('go'), agent: 'recorder' };
    for (const method of ['PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      const { status } = await gateway.send(`/v1/sessions/${session}/tasks`, { method, body });
      expect([method, status]).toEqual([method, 404]);
    }
    for (const name of ['x-http-method-override', 'x-method-override', 'x-http-method']) {
      const { status } = await gateway.send(`/v1/sessions/${session}/tasks`, { headers: { [name]: 'POST' } });
      expect([name, status]).toEqual([name, 200]);
    }
    for (const path of [`/v1/sessions/${session}/tasks/..%2ftasks`, `/v1//sessions/${session}/tasks`, '/V1/tasks'])
      expect([path, (await gateway.send(path, { method: 'POST', body })).status]).toEqual([path, 404]);
    await unharmed(gateway, session);
  });
});
