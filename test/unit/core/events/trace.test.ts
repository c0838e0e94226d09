/** Everything that happens in a task is part of the trace its command came with, and of none when it came with none. */
import { expect, test } from 'vitest';
import { scriptedAgent } from '../../../support/gateway/agents.ts';
import { openTestGateway, says } from '../../../support/gateway/test-gateway.ts';

const busy = () =>
  scriptedAgent(async (sink) => {
    await sink.emit({ event: 'vendor.tollbridge.note', payload: { at: 1 } });
    await sink.emit({ event: 'vendor.tollbridge.note', payload: { at: 2 }, trace_id: 'its-own' });
    await sink.act({ kind: 'tool', tool: 'look', effect: 'read' }, async () => ({ status: 'ok', output: 'seen' }));
    await sink.ask({ kind: 'approval', action: { kind: 'tool', tool: 'mail', tool_call_id: 'c1', effect: 'send' } });
    await sink.artifact({ kind: 'log', mime_type: 'text/plain', bytes: Buffer.from('x') });
    return undefined;
  });
const RULES = '- { id: ask, when: { effect: send }, then: ask }\n- { id: read, when: { effect: read }, then: allow }';

test('every event of a task names the trace of the command that gave it', async () => {
  const at = await openTestGateway({ agents: [busy()], rules: RULES });
  const { session } = await at.room();
  const input = { session_id: session, input: says('go') };
  const { resource } = await at.send('task.submit', input, { trace_id: 'trace-7' });
  const [ask] = await at.asks(resource.id);
  await at.answer(ask!.id, { approved: true });
  await at.until(resource.id);
  const events = await at.events(resource.id);
  const other = events.filter(({ trace_id }) => trace_id !== 'trace-7');
  expect(other.map(({ payload, trace_id }) => [payload.at, trace_id])).toEqual([[2, 'its-own']]);
  const kinds = new Set(events.map(({ event }) => event));
  for (const kind of [
    'user.message',
    'task.submitted',
    'vendor.tollbridge.decided',
    'tool.requested',
    'tool.completed',
  ]) {
    expect(kinds).toContain(kind);
  }
  for (const kind of ['task.auth_required', 'artifact.created', 'receipt.issued', 'task.completed']) {
    expect(kinds).toContain(kind);
  }
});

test('a command without a trace leaves none', async () => {
  const at = await openTestGateway({ agents: [scriptedAgent(async () => undefined)] });
  const { session } = await at.room();
  const { resource } = await at.send('task.submit', {
    session_id: session,
    input: says('go'),
    metadata: { tollbridge: { trace_id: 'made up' } },
  });
  await at.until(resource.id);
  expect((await at.events(resource.id)).filter(({ trace_id }) => trace_id !== undefined)).toEqual([]);
});
