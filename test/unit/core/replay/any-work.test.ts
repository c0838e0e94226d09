/** Work nobody thought of: any sequence of steps is replayed as it was, and the same each time. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { vendorEvent } from '../../../../src/model/events.ts';
import { Receipt } from '../../../../src/model/receipt.ts';
import { check } from '../../../../src/model/validate.ts';
import { eventually } from '../../../support/eventually.ts';
import { openTestGateway, REAL_TIME } from '../../../support/gateway/test-gateway.ts';
import { expectFaithful, LONG, RULES, replay, tools } from '../../../support/tasks/replay.ts';
import { sameText } from '../../../support/tasks/same-receipt.ts';
import { type Script, scripted, stopped, text } from '../../../support/tasks/script.ts';

describe('any work at all', () => {
  type Step =
    | { readonly do: 'say' | 'note' | 'span' | 'file' | 'usage' | 'watch'; readonly n: number }
    | { readonly do: 'act' | 'ask'; readonly n: number; readonly tool: string }
    | { readonly do: 'wonder'; readonly n: number }
    | { readonly do: 'together'; readonly steps: readonly Step[] };
  const TOOLS = ['write', 'fail', 'throw', 'no', 'mend', 'later', 'ask', 'long', 'slow'];
  const n = fc.nat(2);
  const single: fc.Arbitrary<Step> = fc.oneof(
    fc.record({ do: fc.constantFrom('say', 'note', 'span', 'file', 'usage', 'watch'), n }),
    fc.record({ do: fc.constantFrom('act', 'ask'), n, tool: fc.constantFrom(...TOOLS) }),
    fc.record({ do: fc.constant('wonder' as const), n }),
  );
  const steps = fc.array(
    fc.oneof(
      { weight: 3, arbitrary: single },
      {
        weight: 1,
        arbitrary: fc.record({ do: fc.constant('together' as const), steps: fc.array(single, { maxLength: 4 }) }),
      },
    ),
    { maxLength: 8 },
  );
  const ends = fc.constantFrom('completes', 'fails', 'throws', 'is canceled');

  function scriptOf(wanted: readonly Step[], end: string): Script {
    return async ({ sink, signal }) => {
      let calls = 0;
      const take = async (step: Step): Promise<unknown> => {
        calls += 1;
        const tool_call_id = `call-${calls}`;
        switch (step.do) {
          case 'say':
            return await sink.emit(text(step.n === 0 ? LONG : `words ${step.n}`));
          case 'note':
            return await sink.emit({ event: vendorEvent('com.example.note'), payload: { n: step.n } });
          case 'span': {
            const span = { id: tool_call_id, kind: 'llm', call_id: tool_call_id };
            return await sink.emit({ event: 'span.completed', payload: { span, response: { n: step.n } } });
          }
          case 'file':
            return await sink.artifact({ kind: 'file', mime_type: 'text/plain', bytes: Buffer.from(`file ${step.n}`) });
          case 'usage':
            return await sink.emit({
              event: 'vendor.tollbridge.usage',
              payload: { provider: 'p', model: `m${step.n}` },
            });
          case 'watch': {
            const request = { tool_call_id, name: 'ls', kind: 'tool', input: { n: step.n } };
            await sink.emit({ event: 'tool.requested', payload: request });
            const done = { tool_call_id, name: 'ls', status: 'ok', output: step.n };
            return step.n > 0 ? await sink.emit({ event: 'tool.completed', payload: done }) : undefined;
          }
          case 'act':
            return await sink.act({ kind: 'tool', tool: step.tool, tool_call_id, arguments: { n: step.n } });
          case 'ask': {
            const action = { kind: 'tool' as const, tool: step.tool, tool_call_id, arguments: { n: step.n } };
            return await sink.ask({ kind: 'approval', action, takesArguments: step.n > 0 });
          }
          case 'wonder':
            return await sink.ask({ kind: 'input', key: tool_call_id, question: `What is ${step.n}?` });
          case 'together':
            return await Promise.all(step.steps.map(take));
        }
      };
      for (const step of wanted) await take(step);
      if (end === 'is canceled') await stopped(signal);
      if (end === 'throws') throw new Error('no more');
      return { state: end === 'fails' ? 'FAILED' : 'COMPLETED' };
    };
  }

  test('is replayed as it was, and the same each time', { timeout: 240_000 }, async () => {
    const played = new Map<string, Script>();
    const box = tools();
    const agent = scripted('one', (stage) => played.get(String(stage.work.task.metadata.script))!(stage));
    const gateway = await openTestGateway({
      ...REAL_TIME,
      rules: RULES,
      tools: [box],
      settings: { inlineLimit: 300, deferTries: 1, graceMs: 20 },
      agents: [agent],
    });
    let round = 0;
    await fc.assert(
      fc.asyncProperty(
        steps,
        ends,
        fc.array(fc.boolean(), { minLength: 1, maxLength: 4 }),
        async (wanted, end, yes) => {
          round += 1;
          played.set(String(round), scriptOf(wanted, end));
          const { id } = await gateway.submit(await gateway.session(), { metadata: { script: String(round) } });
          let answers = 0;
          await eventually(async () => {
            const open = await gateway.openAsks();
            for (const ask of open) {
              const approved = yes[answers++ % yes.length]!;
              await gateway
                .answer(ask.id, ask.kind === 'input' && approved ? { value: answers } : { approved })
                .catch(() => {});
            }
            const { status } = await gateway.task(id);
            // Canceled at some point, whatever it was doing.
            if (end === 'is canceled' && answers >= yes.length)
              await gateway.send('task.cancel', { task_id: id }).catch(() => {});
            else if (end === 'is canceled' && open.length === 0) answers += 1;
            return ['COMPLETED', 'FAILED', 'CANCELED'].includes(status);
          });
          await gateway.runtime.idle();
          const task = await gateway.task(id);
          const [ran, starts] = [box.ran.length, agent.starts.length];
          const [one, two] = [await replay(gateway, id), await replay(gateway, id)];
          expect([one.status, one.failure]).toEqual([task.status, task.failure]);
          await expectFaithful(gateway, task, one);
          check(Receipt, await gateway.receipt(one.id), 'the receipt');
          expect(sameText(await gateway.receipt(one.id))).toBe(sameText(await gateway.receipt(two.id)));
          const third = await replay(gateway, one.id);
          await expectFaithful(gateway, one, third);
          expect([box.ran.length, agent.starts.length]).toEqual([ran, starts]);
          expect(await gateway.openAsks()).toEqual([]);
        },
      ),
      { numRuns: 40 },
    );
  });
});
