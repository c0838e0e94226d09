/** Lines that differ from the one before in their words alone: what is read from them is what a parser would read, and no other line is taken. */
import { expect, test } from 'vitest';
import { createRunOn } from '../../../../adapters/acp/relay/frames/repeated-lines.ts';
import type { JsonObject } from '../../../../src/index.ts';
import { openStage, text } from '../../../support/acp/relay.ts';

const LIKE: JsonObject = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'first' } };
const line = (text: string, more = '') =>
  `{"method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk","content":{"text":${text},"type":"text"}},"sessionId":"s1"}${more}}\n`;

function learned(first = line('"first"'), take: (words: string) => boolean = () => true) {
  const words: string[] = [];
  const runOn = createRunOn((wireId, like, text) => {
    expect([wireId, like]).toEqual(['s1', LIKE]);
    if (!take(text)) return false;
    words.push(text);
    return true;
  });
  runOn.learn(Buffer.from(first), 's1', LIKE);
  return { words, through: (text: string, from = 0) => runOn.through(Buffer.from(text), from) };
}

test('all plain words in a row are taken, with what a parser would read', () => {
  const texts = ['" two"', '"}}{[],:"', '"`~!@#$%^&*()_+ /<>?"', '"x"'];
  const { words, through } = learned();
  const chunk = texts.map((text) => line(text)).join('');
  expect(through(chunk)).toBe(chunk.length);
  expect(words).toEqual([texts.map((text) => JSON.parse(text)).join('')]);
});

test.each([
  ['an escape', line('"a\\n"')],
  ['an escaped quote', line('"a\\"b"')],
  ['a letter of more than one byte', line('"é"')],
  ['a control character, which is not JSON', line('"a\tb"')],
  ['no words', line('""')],
  ['something that is no text', line('7')],
  ['more than words', line('"a"', ',"x":1')],
  ['another session', line('"a"').replace('"s1"', '"s2"')],
  ['another order', line('"a"').replace('"sessionId":"s1"', '').replace('"params":{', '"params":{"sessionId":"s1",')],
  ['another end of line', line('"a"').replace('\n', '\r\n')],
  ['half a line', line('"a"').slice(0, -1)],
  ['half of its words', line('"abc').slice(0, -40)],
])('a line with %s is looked at by itself, and those before it are taken', (_, other) => {
  const { words, through } = learned();
  const before = line('"one"');
  expect(through(before + other + before)).toBe(before.length);
  expect(words).toEqual(['one']);
});

test('what is not taken is looked at by itself', () => {
  const { words, through } = learned(line('"first"'), (said) => said !== 'noyes');
  const [yes, no] = [line('"yes"'), line('"no"')];
  expect(through(no + yes)).toBe(0);
  expect(through(no + yes, no.length)).toBe(no.length + yes.length);
  expect(words).toEqual(['yes']);
});

test('of names that stand twice the words are those that parsers keep', () => {
  const twice = (text: string) => line('"old"').replace('"old"', `"old","text":${text}`);
  const { words, through } = learned(twice('"first"'));
  const chunk = twice('"new"');
  expect(JSON.parse(chunk).params.update.content.text).toBe('new');
  expect(through(chunk)).toBe(chunk.length);
  expect(words).toEqual(['new']);
});

test('a last line without its end teaches nothing', () => {
  const { through } = learned(line('"first"').slice(0, -1));
  expect(through(line('"a"'))).toBe(0);
});

test('what is written down of a turn is every word of it, taken or looked at', async () => {
  const { editor, agent, greeted, prompt, task, home } = await openStage();
  await greeted();
  const done = prompt();
  await agent.received(({ method }) => method === 'session/prompt');
  const words = Array.from({ length: 400 }, (_, at) => (at % 7 === 0 ? `"${at}" é\n` : `word ${at} `));
  const said = words.map((some) => JSON.stringify({ method: 'session/update', params: text(some) }));
  const before = editor.lines.length;
  agent.raw(said.map((one) => `${one}\n`).join(''));
  agent.say({ id: 2, result: { stopReason: 'end_turn' } });
  await done;
  expect(editor.lines.slice(before, before + said.length)).toEqual(said);
  const events = await home.events((await task()).id);
  const of = (name: string) => events.filter(({ event }) => event === name).map(({ payload }) => payload);
  expect(of('agent.message')).toMatchObject([{ message: { parts: [{ text: words.join('') }] } }]);
  const deltas = of('vendor.tollbridge.message_delta');
  expect(deltas.map((delta) => delta.text).join('')).toBe(words.join(''));
});
