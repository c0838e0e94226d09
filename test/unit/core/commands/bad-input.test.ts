/** Whatever is wrong with a command is refused in our own words, and leaves no trace. */
import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { COMMANDS, type CommandKind } from '../../../../src/model/commands.ts';
import { asFault } from '../../../../src/model/faults.ts';
import type { JsonObject } from '../../../../src/model/schema.ts';
import { of } from '../../../support/gateway/test-gateway.ts';
import { type Belongings, everything, file, red } from '../../../support/gateway/two-tenants.ts';
import { fromSchema } from '../../../support/wire/from-schema.ts';

let own: Belongings;

beforeEach(async () => {
  own = await everything();
});

describe('bad input', () => {
  const kinds = Object.keys(COMMANDS) as CommandKind[];

  /** Values that are JSON and nothing anyone expects. */
  const anything = fc.oneof(
    fc.jsonValue({ maxDepth: 3 }),
    fc.string({ unit: 'binary' }),
    fc.constantFrom('\ud800', '__proto__', 'constructor', '../..', '', '\u0000', 1e308, -0, 2 ** 53, 1e-7),
  );

  /** As wanted, with names of things that are there; sometimes with one member that is anything. */
  function nearly(ids: Readonly<Record<string, string>>, kind: CommandKind): fc.Arbitrary<unknown> {
    const known = fc.constantFrom(...Object.values(ids), 'none');
    const named = (member: string) => {
      const id = /_ids?$/.test(member)
        ? ids[member.replace(/_ids?$/, '').replace(/^(parent|through)_/, '')]
        : undefined;
      if (member === 'agent') return fc.constantFrom('none', 'agent', 'nobody');
      if (member === 'wait_ms') return fc.constant(0);
      if (member === 'tool') return fc.constantFrom('look', 'send', 'fly');
      if (member === 'event') return fc.constantFrom(...FACTS);
      if (member === 'parts') return fc.array(PART, { maxLength: 2 });
      if (member === 'payload') return PAYLOAD;
      if (member === 'body') return declaredBody(ids);
      if (member === 'end') return fc.constant(undefined); // it would be the end of everything after it
      return id
        ? fc.oneof({ weight: 4, arbitrary: fc.constant(id) }, known)
        : member.endsWith('id')
          ? known
          : undefined;
    };
    const right = fromSchema(COMMANDS[kind], named, anything) as fc.Arbitrary<JsonObject>;
    const wrong = fc.dictionary(fc.constantFrom(...Object.keys(COMMANDS[kind].properties)), anything, { maxKeys: 1 });
    return fc.oneof(
      { weight: 3, arbitrary: right },
      fc.tuple(right, wrong).map(([a, b]) => ({ ...a, ...b })),
    );
  }
  /** Enough for any declared resource at once, sometimes with something else in place of a member. */
  function declaredBody(ids: Readonly<Record<string, string>>): fc.Arbitrary<JsonObject> {
    const whole = {
      ...{ name: 'n', root: 'r', version: '1', entry_workflow: 'e', description: '', autonomy_tier: 'suggest' },
      ...{ receipt_policy: 'optional', scope: 'workspace', owner_id: ids.workspace!, content: 1, provenance: {} },
      ...{ workspace_id: ids.workspace!, provider: 'p', capabilities: [], event_kinds: [], limits: { tasks: 1 } },
      ...{ usage: { tasks: 0 }, quota_id: ids.quota!, default_branch_id: ids.branch!, status: 'ACTIVE' },
    };
    const odd = fc.dictionary(
      fc.constantFrom(...Object.keys(whole), 'tenant_id', 'id', 'metadata', ...COLUMNS),
      anything,
      {
        maxKeys: 2,
      },
    );
    return odd.map((change) => ({ ...whole, ...(change as JsonObject) }));
  }
  const COLUMNS = ['session_id', 'task_id', 'parent_task_id', 'state'];
  const PART = fc.oneof(
    fc.record({ type: fc.constant('text'), text: fc.string({ unit: 'binary' }), visibility: fc.constant('public') }),
    fc.record({ type: fc.constant('json'), value: anything, visibility: fc.constant('receipt_only') }),
    fc.record({ type: fc.constant('odd'), value: anything }),
    anything,
  );
  const PAYLOAD = fc.record(
    {
      message: fc.oneof(anything, fc.record({ role: anything, id: anything, parts: fc.array(PART, { maxLength: 2 }) })),
      artifact: fc.oneof(anything, fc.record({ id: anything, metadata: anything, sha256: anything, object: anything })),
      tool_call_id: anything,
      usd_micros: anything,
      entries: anything,
      evidence: anything,
    },
    { requiredKeys: [] },
  );
  const FACTS = [
    'agent.message',
    'user.message',
    'artifact.created',
    'artifact.updated',
    'tool.requested',
    'tool.completed',
    'vendor.tollbridge.usage',
    'vendor.tollbridge.plan',
    'vendor.tollbridge.decided',
    'task.completed',
    'span.completed',
    '',
  ];

  test('is always refused in our own words, and never leaves a trace', async () => {
    const { t, ids } = own;
    // Commands that end things are tried on things that nothing else needs.
    const spare = await t.room({ actor: red, persona: {} });
    const task = await spare.task({ agent: 'none' });
    const ending = {
      ...ids,
      session: spare.session,
      workspace: spare.workspace,
      persona: spare.persona!,
      task: task.id,
    };
    const over = Date.now() + 6000;
    const ENDS = new Set<CommandKind>(['session.close', 'session.truncate', 'task.cancel', 'resource.delete']);
    await fc.assert(
      fc.asyncProperty(
        fc
          .constantFrom(...kinds)
          .chain((kind) =>
            fc.tuple(
              fc.constant(kind),
              fc.oneof(
                { weight: 1, arbitrary: anything },
                { weight: 9, arbitrary: nearly(ENDS.has(kind) ? ending : ids, kind) },
              ),
              fc.option(fc.string({ minLength: 1 }), { nil: undefined }),
            ),
          ),
        async ([kind, body, key]) => {
          if (Date.now() > over) return;
          const before = (await t.runtime.store.tip({ of: 'all' })) ?? '';
          const sure = kind === 'tool.call' && isObject(body) && isObject(body.action) && body.action.tool === 'send';
          if (sure) return; // it would be let through only by a person, and would wait for one
          const waits = kind === 'action.propose' && isObject(body) ? { ...body, wait_ms: 0 } : body;
          const envelope = { actor: red, ...(key && { idempotency: { key } }) };
          const fault = await t.send(kind, waits as never, envelope).then(
            () => undefined,
            (cause) => asFault(cause),
          );
          if (!fault) return;
          expect(fault.kind, `${kind}: ${fault.message}: ${String(fault.cause)}`).not.toBe('internal');
          // A refusal by policy is on record; a mistake is not.
          if (fault.kind === 'policy_violation' || fault.kind === 'rate_limited') return;
          const after: string[] = [];
          for await (const event of t.runtime.store.read({ stream: { of: 'all' }, after: before })) {
            // A replay let in before goes on meanwhile.
            // So is an answer that was not its to give.
            const refused = event.event === 'vendor.tollbridge.answer_refused';
            if (event.actor === red.id && !event.replayed && !refused) after.push(event.event);
          }
          expect(after, `${kind}: ${fault.message}`).toEqual([]);
        },
      ),
      { seed: 1789, numRuns: 2000 },
    );
  });

  test.each([
    [400, undefined],
    [600, 'invalid_request'],
    [100_000, 'invalid_request'],
  ])('nested %i deep', async (depth, refused) => {
    const { t, ids } = own;
    const deep = JSON.parse(`${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`) as JsonObject;
    const parts = [{ type: 'json', value: deep, visibility: 'public' }];
    const memory = { scope: 'session', owner_id: ids.session!, content: deep, provenance: {} };
    const attempts: readonly [CommandKind, JsonObject][] = [
      ['task.submit', { session_id: ids.session!, input: deep, agent: 'none' }],
      ['message.append', { session_id: ids.session!, message: { role: 'user', parts } }],
      ['action.propose', { task_id: ids.task!, action: { kind: 'tool', tool: 't', arguments: deep }, wait_ms: 0 }],
      ['tool.call', { task_id: ids.task!, action: { kind: 'tool', tool: 'look', arguments: deep } }],
      ['resource.create', { object: 'memory', body: memory }],
      ['task.report', { task_id: ids.task!, facts: [{ event: 'agent.odd', payload: deep }] }],
      ['session.update', { session_id: ids.session!, metadata: deep }],
      ['artifact.register', { ...file, metadata: deep }],
      ['passthrough', { protocol: 'p', method: 'm', workspace_id: ids.workspace!, params: deep }],
    ];
    for (const [kind, body] of attempts) {
      const sent = t.send(kind, body as never, { actor: red, idempotency: { key: 'deep' } });
      const fault = await sent.then(
        () => undefined,
        (cause) => asFault(cause),
      );
      expect(fault?.kind, `${kind}: ${fault?.message} ${String(fault?.cause)}`).toBe(refused);
    }
  });

  test('a body that is no object, or not there', async () => {
    const { t } = own;
    for (const kind of kinds) {
      for (const body of [undefined, null, 1, 'text', [], true]) {
        expect(await t.refused(kind, body, { actor: red }), kind).toMatchObject({ kind: 'invalid_request' });
      }
    }
    expect(of(await t.all(), 'vendor.tollbridge.note')).toEqual([]);
  });
});

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
