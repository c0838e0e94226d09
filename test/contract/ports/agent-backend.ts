/**
 * What every agent backend owes core (`src/ports/agents.ts`): facts only through the sink it was given, one end per run, an end on its
 * signal, no act without an approval, and a failure with a reason, never a hang.
 */
import { describe, expect, test } from 'vitest';
import type { Answer } from '../../../src/model/asks.ts';
import type { End, Fact } from '../../../src/model/commands.ts';
import type { JsonObject } from '../../../src/model/schema.ts';
import type { AgentBackend, Question, Run, Sink, Work } from '../../../src/ports/index.ts';
import { latch } from '../../support/gateway/agents.ts';
import { FakeBridge } from '../../support/gateway/demo-agent.ts';

export interface AgentUnderTest {
  readonly backend: AgentBackend;
  /** Work with this input, in a session of its own for each id. */
  work(input: JsonObject, id: string): Work;
  /** Input for an agent that says something and completes; the text holds this word. */
  readonly says: { readonly input: JsonObject; readonly word: string };
  /** Input for an agent that works until it is stopped. */
  readonly waits: JsonObject;
  /** Input for an agent that needs an approval before its one act. */
  readonly asks: JsonObject;
  readonly fails: JsonObject;
  /** How often the act behind `asks` happened. */
  acted(): number;
  /** Takes away the process or server that does the work. Absent: the agent runs in this process. */
  readonly gone?: () => Promise<void>;
}

type Outcome = { readonly state: End['state']; readonly reason: string };

export function agentBackendContract(name: string, make: () => Promise<AgentUnderTest>): void {
  describe(`agent backend contract: ${name}`, () => {
    test('nothing is reported before the start; the words of the work come through the sink, and it ends once', async () => {
      const { backend, work, says } = await make();
      const sink = new RecordingSink();
      expect(sink.facts).toEqual([]);
      expect(await outcome(backend, work(says.input, '1'), sink)).toMatchObject({ state: 'COMPLETED' });
      expect(sink.text()).toContain(says.word);
      const reported = sink.facts.length;
      // Another task from beginning to end: whatever the first still had to say would have come by now.
      expect(await outcome(backend, work(says.input, '2'), new RecordingSink())).toMatchObject({ state: 'COMPLETED' });
      expect(sink.facts).toHaveLength(reported);
      expect(sink.facts.map(({ event }) => event).filter((event) => event.startsWith('task.'))).toEqual([]);
    });

    test('two tasks at the same time report to their own sinks', async () => {
      const { backend, work, says } = await make();
      const sinks = [new RecordingSink(), new RecordingSink()];
      const ends = await Promise.all(sinks.map((sink, at) => outcome(backend, work(says.input, String(at + 1)), sink)));
      expect(ends.map(({ state }) => state)).toEqual(['COMPLETED', 'COMPLETED']);
      for (const sink of sinks) expect(sink.text().split(says.word)).toHaveLength(2);
    });

    test('work ends on its signal, and is not completed', async () => {
      const { backend, work, waits } = await make();
      const stop = new AbortController();
      const sink = new RecordingSink();
      const ended = outcome(backend, work(waits, '1'), sink, stop.signal);
      await sink.begun;
      stop.abort();
      expect((await ended).state).not.toBe('COMPLETED');
    });

    test('a signal that fired before the start leaves nothing running', async () => {
      const { backend, work, waits } = await make();
      const ended = await outcome(backend, work(waits, '1'), new RecordingSink(), AbortSignal.abort());
      expect(ended.state).not.toBe('COMPLETED');
    });

    test.each([
      { kind: 'denied', by: 'ana', reason: 'not today' },
      { kind: 'expired', reason: 'no answer in time' },
      { kind: 'canceled', reason: 'the question was withdrawn' },
    ] as const)('a question that is $kind is a no: the act does not happen, and the work ends', async (answer) => {
      const { backend, work, asks, acted } = await make();
      const sink = new RecordingSink(answer);
      const { state } = await outcome(backend, work(asks, '1'), sink);
      expect(sink.decisions).toBe(1);
      expect(['COMPLETED', 'FAILED', 'CANCELED']).toContain(state);
      expect(acted()).toBe(0);
    });

    test('an approved act happens once', async () => {
      const { backend, work, asks, acted } = await make();
      const sink = new RecordingSink({ kind: 'approved', by: 'ana' });
      expect(await outcome(backend, work(asks, '1'), sink)).toMatchObject({ state: 'COMPLETED' });
      expect(acted()).toBe(1);
    });

    test('work that fails has failed, with a reason', async () => {
      const { backend, work, fails } = await make();
      const { state, reason } = await outcome(backend, work(fails, '1'), new RecordingSink());
      expect(state).toBe('FAILED');
      expect(reason).toMatch(/\S/);
    });

    test('a sink that cannot write ends the work as failed', async () => {
      const { backend, work, says } = await make();
      const sink = new RecordingSink();
      sink.broken = true;
      expect((await outcome(backend, work(says.input, '1'), sink)).state).not.toBe('COMPLETED');
    });

    test('a peer that is gone is a failure with a reason', async () => {
      const { backend, work, says, gone } = await make();
      await gone?.();
      const { state, reason } = await outcome(backend, work(says.input, '1'), new RecordingSink());
      expect(state).toBe(gone ? 'FAILED' : 'COMPLETED');
      if (gone) expect(reason).toMatch(/\S/);
    });

    test('closing finishes while work runs, and twice', async () => {
      const { backend, work, waits } = await make();
      const stop = new AbortController();
      const sink = new RecordingSink();
      const ended = outcome(backend, work(waits, '1'), sink, stop.signal);
      await sink.begun;
      await backend.close?.();
      await backend.close?.();
      stop.abort();
      expect((await ended).state).not.toBe('COMPLETED');
    });
  });
}

/** Remembers what it received. Approvals, of questions and of acts alike, get the one answer of the test. */
class RecordingSink extends FakeBridge implements Sink {
  /** Settles with the first fact. */
  readonly begun: Promise<void>;
  broken = false;
  decisions = 0;
  readonly #decided: Answer;

  constructor(decided: Answer = { kind: 'approved', by: 'ana' }) {
    super();
    this.#decided = decided;
    const first = latch();
    this.begun = first.promise;
    this.onEmit = () => first.open();
  }
  override async emit(fact: Fact): Promise<void> {
    if (this.broken) throw new Error('the log cannot be written');
    await super.emit(fact);
  }
  override async ask(question: Question): Promise<Answer> {
    this.decisions += 1;
    await super.ask(question);
    return this.#decided;
  }
  override async act(...[proposed, effect, withdrawn]: Parameters<Sink['act']>): ReturnType<Sink['act']> {
    this.decisions += 1;
    if (this.#decided.kind !== 'approved') this.refusals.set(proposed.tool ?? '', 'not approved');
    return await super.act(proposed, effect, withdrawn);
  }
  text(): string {
    return this.said().join('\n');
  }
}

/** How the work ended. A rejection is a failure, as it is for core. */
async function outcome(
  backend: AgentBackend,
  work: Work,
  sink: Sink,
  signal = new AbortController().signal,
): Promise<Outcome> {
  let run: Run | undefined;
  try {
    run = await backend.start(work, sink, signal);
    const { state, failure, summary } = await run.done;
    return { state, reason: failure?.message ?? failure?.code ?? summary ?? '' };
  } catch (cause) {
    return { state: 'FAILED', reason: (cause as Error).message };
  } finally {
    await run?.stop?.();
  }
}
