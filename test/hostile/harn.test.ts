/** Frames and bodies of the Agents Protocol that no client should send. */
import { expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { scriptedAgent } from '../support/agents.ts';
import { type Body, openDoor, text } from '../support/door.ts';

async function doorWith() {
  let started = 0;
  const agent = scriptedAgent(async () => {
    started += 1;
    return undefined;
  });
  const door = await openDoor({ agents: [agent] });
  return { door, ...(await door.room()), started: () => started };
}

test('a command without an id, a frame of ours, and a frame nobody knows are refused on a socket', async () => {
  const { door, session, started } = await doorWith();
  const at = `${door.url.replace('http', 'ws')}/v1/sessions/${session}/events/stream`;
  const socket = new WebSocket(at, { headers: door.headers() });
  const heard: Body[] = [];
  socket.on('message', (data) => heard.push(JSON.parse(String(data))));
  await new Promise<void>((resolve, reject) => socket.once('open', resolve).once('error', reject));
  const errors = () =>
    heard.filter(({ type }) => type === 'error').map(({ id, error }) => [id, error.param, error.message]);
  const submit = { type: 'task.submit', input: text('go') };
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
    [undefined, '/id', 'task.submit is a request and needs an id; as a notification it is not passed on'],
    ['a', '/type', 'event is sent by the gateway, not by the client'],
    ['b', '/type', 'there is no frame of this type'],
    [undefined, null, 'a frame is a JSON object'],
    [undefined, null, 'a name appears twice in one object'],
  ]);
  expect(started()).toBe(0);
  socket.send(JSON.stringify({ type: 'ping', t: 1 }));
  await expect.poll(() => heard.some(({ type }) => type === 'pong')).toBe(true);
  socket.terminate();
});

test('a body that can be read in two ways starts nothing', async () => {
  const { door, session, started } = await doorWith();
  const input = JSON.stringify(text('go'));
  for (const body of [`{"input":${input},"input":${input}}`, `\ufeff{"input":${input}}`, `{"input":${input}}\u0000`]) {
    const answer = await door.call('POST', `/v1/sessions/${session}/tasks`, body);
    expect(answer.status).toBe(400);
  }
  expect(started()).toBe(0);
});
