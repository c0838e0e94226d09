/**
 * An agent that behaves as the protocol's test kit asks: what it does is chosen by how the id of the message begins, the
 * longest beginning first. Anything else completes.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { End } from '../../../src/model/commands.ts';
import type { Json } from '../../../src/model/schema.ts';
import type { AgentBackend, Sink, Work } from '../../../src/ports/index.ts';

type Behaviour = (sink: Sink, work: Work, signal: AbortSignal) => Promise<End>;

const DONE: End = { state: 'COMPLETED' };
const file = { kind: 'file', name: 'output.txt', mime_type: 'text/plain' } as const;

/** A message in pieces, then whole. */
async function say(sink: Sink, { task }: Work, ...pieces: string[]): Promise<End> {
  const message_id = `${task.id}.answer`;
  if (pieces.length > 1) {
    for (const text of pieces) {
      await sink.emit({ event: 'vendor.tollbridge.message_delta', payload: { message_id, role: 'assistant', text } });
    }
  }
  await tell(sink, message_id, { type: 'text', text: pieces.join(''), visibility: 'public' });
  return DONE;
}

async function tell(sink: Sink, id: string, part: Json): Promise<void> {
  await sink.emit({ event: 'agent.message', payload: { message: { id, role: 'assistant', parts: [part] } } });
}

const BEHAVIOURS: Readonly<Record<string, Behaviour>> = {
  'tck-complete-task': async () => ({ state: 'COMPLETED', summary: 'Hello from TCK' }),
  'tck-artifact-text': (sink, work) => say(sink, work, 'Generated text content'),
  'tck-artifact-file': async (sink) => {
    await sink.artifact({ ...file, bytes: Buffer.from('Generated file content') });
    return DONE;
  },
  'tck-artifact-file-url': async (sink) => {
    await sink.artifact({ ...file, uri: 'https://example.com/output.txt' });
    return DONE;
  },
  'tck-artifact-data': async (sink, { task }) => {
    await tell(sink, `${task.id}.data`, { type: 'json', value: { key: 'value', count: 42 }, visibility: 'public' });
    return DONE;
  },
  'tck-message-response': async (sink, work) => {
    await say(sink, work, 'Direct message response');
    return { state: 'COMPLETED', metrics: { reply: 'message' } };
  },
  'tck-input-required': async (sink, work) => {
    const answer = await sink.ask({ kind: 'input', key: `${work.task.id}.input`, question: 'What next?' });
    return answer.kind === 'value' ? await say(sink, work, `Thank you for ${JSON.stringify(answer.value)}.`) : DONE;
  },
  'tck-approval': async (sink, work) => {
    const action = {
      kind: 'tool',
      tool: 'publish',
      tool_call_id: 'c1',
      arguments: { page: 1 },
      effect: 'publish',
    } as const;
    const answer = await sink.ask({ kind: 'approval', action });
    return await say(sink, work, answer.kind === 'approved' ? 'Published.' : 'Not published.');
  },
  'tck-reject-task': async () => ({ state: 'FAILED', failure: { code: 'rejected', message: 'rejected' } }),
  'tck-fail-task': async () => ({ state: 'FAILED', failure: { code: 'out_of_paper', message: 'out of paper' } }),
  'tck-stream-001': (sink, work) => say(sink, work, 'Stream hello from TCK'),
  'tck-stream-002': async () => DONE,
  'tck-stream-003': (sink, work) => say(sink, work, 'Stream task lifecycle'),
  'tck-stream-ordering-001': (sink, work) => say(sink, work, 'Ordered output'),
  'tck-stream-artifact-text': (sink, work) => say(sink, work, 'Streamed text content'),
  'tck-stream-artifact-file': async (sink) => {
    await sink.artifact({ ...file, bytes: Buffer.from('Streamed file content') });
    return DONE;
  },
  'tck-stream-artifact-chunked': (sink, work) => say(sink, work, 'chunk-1 ', 'chunk-2'),
  'test-resubscribe-message-id': async (_sink, _work, signal) => {
    await sleep(4_000, undefined, { signal });
    return DONE;
  },
  'tck-work': async (_sink, _work, signal) => {
    await sleep(600_000, undefined, { signal });
    return DONE;
  },
};
const LONGEST_FIRST = Object.keys(BEHAVIOURS).sort((a, b) => b.length - a.length);

/** As the kit of 0.3 wants it: every task works for a while and then asks, again and again. */
const older: Behaviour = async (sink, work, signal) => {
  for (let turn = 1; ; turn += 1) {
    await sleep(turn === 1 ? 2_000 : 100, undefined, { signal });
    const answer = await sink.ask({ kind: 'input', key: `${work.task.id}.input${turn}`, question: 'What next?' });
    if (answer.kind !== 'value') return DONE;
  }
};

export function tckAgent({ kit = '1.0' }: { readonly kit?: '1.0' | '0.3' } = {}): AgentBackend {
  return {
    name: 'tck',
    about: {
      description: 'Behaves as a test kit asks.',
      version: '1.0.0',
      skills: [{ id: 'tck', name: 'Behave', description: 'Does what the id of a message says.' }],
    },
    abilities: { resume: false, evidence: 'held', steer: true },
    async start(work, sink, signal) {
      const { a2a } = work.task.metadata as { a2a?: { message_id?: string } };
      const id = a2a?.message_id ?? '';
      const known = LONGEST_FIRST.find((prefix) => id.startsWith(prefix));
      const other = kit === '0.3' ? older : async () => DONE;
      const behave = (known && BEHAVIOURS[known]) || other;
      return { done: behave(sink, work, signal), steer() {} };
    },
  };
}
