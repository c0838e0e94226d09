/** All output of the demo agent, as facts whose ids are the same each time the same work is done. */
import type { EventKind } from '../model/payloads.ts';
import type { Json, JsonObject } from '../model/schema.ts';
import type { Sink, Work } from '../ports/index.ts';
import { describeStep, type Step, stepFrom, textOf } from './script.ts';

export interface VoiceDeps {
  readonly work: Pick<Work, 'task' | 'recorded'>;
  readonly sink: Pick<Sink, 'emit'>;
  readonly signal: AbortSignal;
  /** Ids of messages emitted before a crash, which are not emitted again. Messages in between may differ. */
  readonly said: ReadonlySet<string>;
  /** Between two pieces of a message. */
  stream(): Promise<void>;
}

export interface Voice {
  say(text: string, artifacts?: readonly string[]): Promise<void>;
  /**
   * An acknowledgement. Counted separately: it depends on when a message arrives, and must not change other messages'
   * ids.
   */
  note(text: string): Promise<void>;
  /** A message written piece by piece. */
  open(): { add(text: string): Promise<void>; close(artifacts?: readonly string[]): Promise<void> };
  plan(steps: readonly Step[], current: number): Promise<void>;
  /** Asks the model for the next step: the script's step, or in a replay the recorded or overridden answer. */
  think(at: number, planned: Step): Promise<Step>;
}

export function createVoice({ work, sink, signal, said, stream }: VoiceDeps): Voice {
  const { id } = work.task;
  const counts = { m: 0, n: 0 };

  const emit = async (event: EventKind, payload: JsonObject): Promise<void> => {
    await sink.emit({ event, payload });
  };

  const begin = (series: keyof typeof counts): ReturnType<Voice['open']> => {
    counts[series] += 1;
    const message_id = `${id}.${series}${counts[series]}`;
    let whole = '';
    return {
      async add(text) {
        whole += text;
        if (said.has(message_id)) return;
        await emit('vendor.tollbridge.message_delta', { message_id, role: 'assistant', text });
      },
      async close(artifacts = []) {
        if (said.has(message_id)) return;
        const parts: JsonObject[] = [
          { type: 'text', text: whole, visibility: 'public' },
          ...artifacts.map((artifact_id) => ({ type: 'artifact_ref', artifact_id, visibility: 'public' })),
        ];
        const message = { id: message_id, object: 'message', role: 'assistant', parts, metadata: {} };
        await emit('agent.message', { message });
      },
    };
  };

  const speak = async (series: keyof typeof counts, text: string, artifacts?: readonly string[]): Promise<void> => {
    const message = begin(series);
    for (const piece of pieces(text)) {
      if (signal.aborted) return;
      await message.add(piece);
      await stream();
    }
    if (!signal.aborted) await message.close(artifacts);
  };

  return {
    open: () => begin('m'),
    say: (text, artifacts) => speak('m', text, artifacts),
    note: (text) => speak('n', text),
    async plan(steps, current) {
      const entries = steps.map((step, at) => ({
        content: describeStep(step),
        status: at < current ? 'completed' : at === current ? 'in_progress' : 'pending',
      }));
      await emit('vendor.tollbridge.plan', { entries });
    },
    /** The script stands in for a model: each step is one model answer, so that a replay has something to replace. */
    async think(at, planned) {
      const call_id = `${id}.llm${at + 1}`;
      const response: Json = work.recorded
        ? await work.recorded.model(call_id)
        : { step: planned, text: describeStep(planned) };
      const step = work.recorded ? stepFrom(response) : planned;
      const model = { provider: 'demo', model: 'script' };
      await emit('span.completed', { span: { id: `${id}.span${at + 1}`, kind: 'llm', call_id }, model, response });
      await emit('vendor.tollbridge.usage', {
        ...model,
        call_id,
        input_tokens: words(textOf(work.task.input)),
        output_tokens: words(describeStep(step)),
        usd_micros: 0,
      });
      return step;
    },
  };
}

/** Three words at a time, with all whitespace kept. */
function pieces(text: string): readonly string[] {
  return text.match(/(?:\S+\s*){1,3}|\s+/g) ?? [];
}

function words(text: string): number {
  return text.split(/\s+/).filter((word) => word !== '').length;
}
