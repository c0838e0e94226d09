/** A secret that comes in pieces is not written down in pieces, and everything else is written as it came. */
import { describe, expect, test } from 'vitest';
import { createStreamed, type Piece } from '../../../../src/core/events/stream-redaction.ts';
import { createRedactor } from '../../../../src/core/redaction/redact.ts';
import type { Fact } from '../../../../src/model/commands.ts';
import { scriptedAgent } from '../../../support/gateway/agents.ts';
import { of, openTestGateway } from '../../../support/gateway/test-gateway.ts';

const SECRET = 'vault-value-of-no-particular-shape';
const REPEATING = 'abcdabcd';

function delta(text: string, message_id = 'm1'): Fact {
  return { event: 'vendor.tollbridge.message_delta', payload: { message_id, role: 'assistant', text } };
}

function redactor() {
  const made = createRedactor();
  for (const secret of [SECRET, REPEATING]) made.learn(secret);
  return made;
}

/** As the log would have it in the end, piece by piece. */
function written(texts: readonly string[], by = redactor()): string[] {
  const streamed = createStreamed(by.beginnings);
  const pieces: Piece[] = texts.flatMap((text) => [...streamed.take(delta(text))]);
  return [...pieces, ...streamed.rest()].map(({ fact }) => by.redact(String(fact.payload.text)).value);
}

/** No more than this many characters in a row of a secret stand anywhere. */
function mostOf(secret: string, text: string): number {
  for (let length = secret.length; length > 0; length -= 1) {
    for (let at = 0; at + length <= secret.length; at += 1)
      if (text.includes(secret.slice(at, at + length))) return length;
  }
  return 0;
}

describe('a known secret', () => {
  test.each([SECRET, REPEATING])('cut anywhere, once or twice, is taken out: %s', (secret) => {
    const text = `it is ${secret} there`;
    for (let first = 0; first <= text.length; first += 1) {
      for (let second = first; second <= text.length; second += 1) {
        const said = written([text.slice(0, first), text.slice(first, second), text.slice(second)]).join('');
        expect(said).toContain('[redacted: known secret]');
        expect(said.replace('[redacted: known secret]', '')).toMatch(/^it is .{0,3} there$/);
      }
    }
  });

  test('spelled letter by letter gives no more than three of them away', () => {
    const said = written([...`so: ${SECRET}${SECRET}. And ${REPEATING}!`]).join('');
    expect(mostOf(SECRET, said)).toBeLessThanOrEqual(3);
    expect(said.endsWith('!')).toBe(true);
  });

  test('in another spelling is one, too', () => {
    const coded = Buffer.from(`user ${SECRET} end`).toString('base64');
    for (let at = 1; at < coded.length; at += 1) {
      const said = written([`x ${coded.slice(0, at)}`, `${coded.slice(at)} y`]).join('');
      expect(mostOf(coded.slice(8, -8), said)).toBeLessThan(12);
    }
  });

  test('that was only begun is reported as it was, when something else follows or nothing does', () => {
    expect(written(['a vault-val', 'ue is a value']).join('')).toBe('a vault-value is a value');
    expect(written(['a vault-val'])).toEqual(['a ', 'vault-val']);
    const streamed = createStreamed(redactor().beginnings);
    streamed.take(delta('a vault-'));
    const texts = streamed.take(delta('b', 'm2')).map(({ fact }) => fact.payload.text);
    expect(texts).toEqual(['vault-', 'b']);
  });
});

test('ordinary text is not held up by a character, and goes on as the very fact it was', () => {
  const streamed = createStreamed(redactor().beginnings);
  for (const text of ['The ', 'vau', 'deville', ' is', '', ' open, abc', 'ab', '\u{1f511}']) {
    const fact = delta(text);
    expect(streamed.take(fact).map((piece) => piece.fact)).toEqual([fact]);
  }
  expect(streamed.rest()).toEqual([]);
});

test('in the log: no half of it, a mark that it was there, and the end of the text before the end of the work', async () => {
  const by = redactor();
  const agent = scriptedAgent(async (sink) => {
    for (const text of ['use vau', 'lt-value-of-no-par', 'ticular-shape now']) await sink.emit(delta(text));
    await sink.emit({ event: 'vendor.tollbridge.plan', payload: { entries: [] } });
    await sink.emit(delta(' and vault-'));
    return undefined;
  });
  const t = await openTestGateway({ agents: [agent], redactor: by });
  const task = await (await t.room()).task();
  await t.until(task.id);
  const deltas = of(await t.events(task.id), 'vendor.tollbridge.message_delta');
  expect(deltas.map(({ payload }) => payload.text)).toEqual([
    'use vau',
    '[redacted: known secret] now',
    ' and ',
    'vault-',
  ]);
  expect(deltas[1]?.metadata.redactions).toEqual([{ field: '/payload/text', reason: 'known secret' }]);
  expect(await t.receipts(task.id)).toMatchObject([{ lifecycle: { final_state: 'SUCCEEDED' } }]);
});
