/** An approver's own arguments, said at every door: exactly they run, and what may not run is refused in that door's words. */
import { describe, expect, test } from 'vitest';
import type { Actor } from '../../src/model/actions.ts';
import type { AskRecord } from '../../src/model/asks.ts';
import type { Row } from '../../src/ports/index.ts';
import { hashOf } from '../../src/receipt/seal/canonical-json.ts';
import type { CoreRuntime } from '../../src/runtime/assemble.ts';
import { openPeer, wire } from '../support/a2a/gateway.ts';
import { openAgentGateway } from '../support/acp/agent-gateway.ts';
import { scriptedAgent } from '../support/gateway/agents.ts';
import { type CountingTools, countingTools, SEND } from '../support/gateway/tools.ts';
import { openDoor } from '../support/harn/gateway.ts';
import { openScene, outcome } from '../support/mcp/one-server.ts';
import { openRuns, pair } from '../support/runs/gateway.ts';
import { openSocket } from '../support/wire/socket-client.ts';

const RULES = `
- { id: no-eve, when: { tool: send, kind: tool, arguments: { to: eve } }, then: block, say: not to eve }
- { id: mail, when: { tool: send, kind: tool }, then: ask }
`;

const sender = () =>
  scriptedAgent(async (sink) => {
    await sink.act(SEND);
    return undefined;
  });

/** Gives work with its own credential, and holds every scope but the one to approve its own work. */
const program = (id: string): Actor => ({ id, kind: 'service', scopes: ['*'] });

/** A question open at a door. `say` answers yes with these arguments and returns what the door said, flat. */
interface Waiting {
  readonly runtime: CoreRuntime;
  readonly taskId: string;
  say(args: unknown, as: 'approver' | 'proposer'): Promise<unknown>;
}

interface AtDoor {
  readonly name: string;
  open(tools: CountingTools): Promise<Waiting>;
  readonly approver: string;
  readonly ok: unknown;
  readonly blocked: unknown;
  readonly own: unknown;
  readonly malformed: unknown;
}

async function harn(tools: CountingTools) {
  const people = { worker: program('worker'), bo: program('bo') };
  const door = await openDoor({ rules: RULES, agents: [sender()], tools: [tools], people });
  const { session } = await door.room();
  const token = (as: string) => ({ authorization: `Bearer ${as === 'approver' ? 'bo' : 'worker'}` });
  const input = { role: 'user', parts: [{ type: 'text', text: 'go', visibility: 'public' }] };
  const { body } = await door.call('POST', '/v1/tasks', { session_id: session, input }, token('proposer'));
  const [ask] = await door.at.asks(body.id);
  return { door, runtime: door.at.runtime, taskId: body.id as string, ask: ask!, token };
}

const brief = ({ status, body }: { status: number; body: { error?: { code: string; message: string } } }) =>
  body.error ? { status, code: body.error.code, message: body.error.message } : { status };

const HARN = {
  approver: 'bo',
  blocked: { status: 422, code: 'policy_violation', message: expect.stringMatching(/not to eve.*stays open/) },
  own: { status: 403, code: 'permission_denied', message: expect.stringContaining('another one has to approve') },
  malformed: { status: 400, code: 'invalid_request', message: expect.any(String) },
};

const DOORS: readonly AtDoor[] = [
  {
    name: 'harn respond',
    ...HARN,
    ok: { status: 200 },
    async open(tools) {
      const { door, ask, token, ...rest } = await harn(tools);
      const path = `/v1/permission-requests/${ask.id}/respond`;
      const say: Waiting['say'] = async (args, as) =>
        brief(await door.call('POST', path, { approved: true, arguments: args }, token(as)));
      return { ...rest, say };
    },
  },
  {
    name: 'harn respond, in answer.arguments',
    ...HARN,
    ok: { status: 200 },
    async open(tools) {
      const { door, ask, token, ...rest } = await harn(tools);
      const path = `/v1/permission-requests/${ask.id}/respond`;
      const say: Waiting['say'] = async (args, as) =>
        brief(await door.call('POST', path, { approved: true, answer: { arguments: args } }, token(as)));
      return { ...rest, say };
    },
  },
  {
    name: 'harn user.tool_confirmation',
    ...HARN,
    ok: { status: 201 },
    async open(tools) {
      const { door, ask, token, taskId, runtime } = await harn(tools);
      const say: Waiting['say'] = async (args, as) => {
        const value = { request_id: ask.id, approved: true, arguments: args };
        const message = { role: 'user', parts: [{ type: 'json', value, visibility: 'public' }] };
        const body = { kind: 'tool_confirmation', message };
        return brief(await door.call('POST', `/v1/tasks/${taskId}/messages`, body, token(as)));
      };
      return { runtime, taskId, say };
    },
  },
  {
    name: 'harn socket',
    ...HARN,
    ok: { status: 200 },
    async open(tools) {
      const { door, ask, token, taskId, runtime } = await harn(tools);
      const say: Waiting['say'] = async (args, as) => {
        const socket = await openSocket(`${door.url}/v1/tasks/${taskId}/stream`, { headers: door.headers(token(as)) });
        const frame = await socket.command({
          type: 'response',
          request_id: ask.id,
          approved: true,
          arguments: args,
        });
        socket.close();
        return brief({ status: frame.status, body: frame });
      };
      return { runtime, taskId, say };
    },
  },
  {
    name: 'a2a data part',
    approver: 'worker',
    ok: 'TASK_STATE_COMPLETED',
    blocked: { reason: 'POLICY_VIOLATION', message: expect.stringMatching(/not to eve.*stays open/) },
    own: { reason: 'PERMISSION_DENIED', message: expect.stringContaining('another one has to approve') },
    malformed: { code: -32602 },
    async open(tools) {
      // A peer sees its own tasks only, so the approver is the same principal, with the scope to approve what it started.
      const people = { worker: program('worker'), approver: { ...program('worker'), scopes: ['*', 'approvals:own'] } };
      const peer = await openPeer({ rules: RULES, agents: [sender()], tools: [tools], people });
      const token = (as: string) => ({ authorization: `Bearer ${as === 'approver' ? 'approver' : 'worker'}` });
      const { task } = (await peer.rpc('SendMessage', wire('go'), token('proposer'))).body.result;
      const { data } = task.status.message.parts[1];
      const say: Waiting['say'] = async (args, as) => {
        const parts = [{ data: { askId: data.askId, approved: true, arguments: args } }];
        const { body } = await peer.rpc('SendMessage', wire('', { taskId: task.id, parts }), token(as));
        if (!body.error) return body.result.task.status.state;
        const reason = body.error.data?.[0]?.reason;
        return body.error.code === -32602 ? { code: -32602 } : { reason, message: body.error.message };
      };
      return { runtime: peer.at.runtime, taskId: task.id, say };
    },
  },
  {
    name: 'runs signal',
    approver: 'ana',
    ok: { status: 200 },
    blocked: { status: 403, code: 'POLICY_DENIED' },
    own: { status: 403, code: 'AUTH_FORBIDDEN' },
    malformed: { status: 400, code: 'SIGNAL_PAYLOAD_INVALID' },
    async open(tools) {
      const runs = await openRuns({ rules: RULES, agents: [sender()], tools: [tools] });
      // Runs are their creator's alone: Ana sits in front of it and may approve her own, a program may not.
      const as = { approver: { authorization: pair('ana') }, proposer: { authorization: pair('modest') } };
      const ids = { approver: '', proposer: '' };
      for (const who of ['approver', 'proposer'] as const) {
        ids[who] = (await runs.create('go', {}, as[who])).body.id;
        await runs.at.asks(`task_${ids[who].slice(4)}`);
      }
      const say: Waiting['say'] = async (args, who) => {
        const said = { action: 'approve', payload: { arguments: args } };
        const reported = await runs.call('POST', `/v1/runs/${ids[who]}/signal`, said, as[who]);
        const code = reported.body.reason_code;
        if (who === 'proposer') expect(await runs.at.asks(`task_${ids[who].slice(4)}`)).toHaveLength(1);
        return { status: reported.status, ...(code && { code }) };
      };
      return { runtime: runs.at.runtime, taskId: `task_${ids.approver.slice(4)}`, say };
    },
  },
  {
    name: 'mcp task__answer',
    approver: 'worker',
    ok: { text: expect.stringContaining('is answered') },
    blocked: { error: expect.stringMatching(/not to eve.*stays open/) },
    own: { error: expect.stringContaining('another one has to approve') },
    malformed: { error: expect.stringContaining('object') },
    async open(tools) {
      let scopes = ['*'];
      const authenticate = async () => ({ ...program('worker'), scopes });
      const scene = await openScene({
        rules: RULES,
        common: true,
        gateway: { agents: [sender()], tools: [tools], authenticate },
      });
      const capabilities = { extensions: { 'io.modelcontextprotocol/tasks': {} } };
      const input = await scene.modern(
        'tools/call',
        { name: `agent__${sender().name}`, arguments: { message: 'go' } },
        { capabilities },
      );
      const taskId = outcome(input).result.taskId as string;
      const [ask] = await scene.asks();
      const say: Waiting['say'] = async (args, as) => {
        // Only the client that gave the work finds it here; to approve it as well takes a scope that nobody has by default.
        scopes = as === 'approver' ? ['*', 'approvals:own'] : ['*'];
        const params = { task_id: taskId, ask_id: ask!.id, approved: true, arguments: args };
        const { result, error } = outcome(
          await scene.modern('tools/call', { name: 'task__answer', arguments: params }),
        );
        const text = result?.content?.[0]?.text;
        return error || result.isError ? { error: error?.message ?? text } : { text };
      };
      return { runtime: scene.gateway.runtime, taskId: ask!.task_id, say };
    },
  },
];

const stateOf = async ({ runtime, taskId }: Waiting) =>
  (await runtime.store.list<AskRecord & Row>({ object: 'ask', where: { task_id: taskId }, limit: 5 })).map(
    ({ state }) => state,
  );

describe.each(DOORS)('$name', ({ open, approver, ok, blocked, own, malformed }) => {
  test('refused changes leave the question open; the changed bytes run, and the receipt has both hashes', async () => {
    const tools = countingTools({ send: { effect: 'send' } });
    const waiting = await open(tools);
    const { runtime, taskId, say } = waiting;
    expect(await say({ to: 'eve' }, 'approver')).toEqual(blocked);
    expect(await say({ to: 'cy' }, 'proposer')).toEqual(own);
    expect(await say(['cy'], 'approver')).toEqual(malformed);
    expect(await say('cy', 'approver')).toEqual(malformed);
    expect(await stateOf(waiting)).toEqual(['open']);
    expect(tools.calls).toEqual([]);

    const changed = { to: 'c\u00fd', n: 1.5, deep: [{ a: null }] };
    expect(await say(changed, 'approver')).toEqual(ok);
    await expect.poll(async () => (await runtime.store.receipts({ task: taskId })).length).toBe(1);
    expect(tools.calls.map((call) => call.arguments)).toEqual([changed]);
    const [{ receipt } = { receipt: undefined }] = await runtime.store.receipts({ task: taskId });
    expect(receipt?.side_effects.tool_calls).toMatchObject([
      {
        input_hash: hashOf(changed),
        metadata: { requested_input_hash: hashOf({ to: 'bo' }), changed_by: approver },
        status: 'succeeded',
      },
    ]);
    expect(receipt?.approvals).toMatchObject([{ actor: approver, decision: 'approved' }]);
  });
});

test('a question of an ACP agent takes a yes or a no: other arguments are refused, and it says why', async () => {
  const at = await openAgentGateway();
  const shell = { toolCallId: 'sh', title: 'rm -rf build', kind: 'execute', rawInput: { command: 'rm -rf build' } };
  const options = [
    { optionId: 'go', name: 'Allow', kind: 'allow_once' },
    { optionId: 'no', name: 'Reject', kind: 'reject_once' },
  ];
  const task = await at.task([{ ask: 'session/request_permission', params: { toolCall: shell, options } }]);
  const [ask] = await at.t.asks(task.id);
  const body = { ask_id: ask!.id, approved: true, arguments: { command: 'ls' } };
  const fault = await at.t.refused('ask.answer', body);
  expect(fault).toMatchObject({
    kind: 'invalid_request',
    message: expect.stringContaining('can only hear yes or no'),
    details: { code: 'cannot_change' },
  });
  expect(await at.t.runtime.store.get('ask', ask!.id)).toMatchObject({ state: 'open' });
  expect(at.notes('answer')).toEqual([]);
  await at.t.answer(ask!.id);
  await at.t.until(task.id);
  expect(at.notes('answer').map((line) => JSON.parse(line).outcome)).toEqual([{ outcome: 'selected', optionId: 'go' }]);
});
