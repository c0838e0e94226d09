/** What a remote's receipt holds, beside what was carried of its work. */
import { expect, test } from 'vitest';
import type { Sink } from '../../../src/ports/index.ts';
import { createCarried, statedContents } from '../../../src/transport/outbound/carried.ts';

const sink = {
  emit: async () => {},
  artifact: async () => ({ id: 'artifact_1', sha256: null }),
} as unknown as Sink;

test('an aspect of which fewer records came than the receipt holds is lost, and the others are not', async () => {
  const carried = createCarried(sink);
  await carried.sink.emit({ event: 'vendor.tollbridge.usage', payload: { input_tokens: 1 } });
  await carried.sink.emit({ event: 'vendor.tollbridge.remote_decided', payload: { tool_call_id: 'a' } });
  await carried.sink.emit({ event: 'vendor.tollbridge.remote_decided', payload: { tool_call_id: 'a' } });
  // Giving the work away is the gateway's own effect.
  await carried.sink.emit({ event: 'vendor.tollbridge.side_effect', payload: { type: 'network' } });
  await carried.sink.artifact({} as never);
  const loss = carried.loss({ usage: 3, effects: 1, files: 1, decisions: 2 });
  expect(loss).toEqual([
    { aspect: 'effects', why: "the remote's receipt has 1 effects on files and hosts; 0 of them could be carried" },
    { aspect: 'decisions', why: "the remote's receipt has 2 decisions on calls; 1 of them could be carried" },
  ]);
});

test('a remote that does not say what its receipt holds is not judged', () => {
  expect(createCarried(sink).loss(undefined)).toEqual([]);
  expect(statedContents('7')).toBeUndefined();
  expect(statedContents({ usage: -1, files: '2', effects: 1.5, decisions: 2, more: 1 })).toEqual({ decisions: 2 });
});
