/** Nothing is lost: what policy does not change arrives as it left, byte for byte, in the order it was said. */

import { expect, test } from 'vitest';
import { within } from '../../../../adapters/acp/shapes.ts';
import { vendorEvent } from '../../../../src/model/events.ts';
import { corpus, IDS, REFUSED } from '../../../support/acp/corpus.ts';
import { OPTIONS, openStage, type Stage, update } from '../../../support/acp/relay.ts';
import type { End } from '../../../support/wire/line-end.ts';

/** In pieces that end anywhere, also inside of characters. */
function inPieces(end: End, lines: readonly string[], size: number): void {
  const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''));
  for (let at = 0; at < bytes.length; at += size) end.raw(bytes.subarray(at, at + size));
}

async function arrived(end: End, count: number): Promise<readonly string[]> {
  while (end.lines.length < count) await new Promise((resolve) => setImmediate(resolve));
  return end.lines;
}

/** Requests of vendors are acts of unknown effect. */
const VENDORS = '[{ id: vendors, when: { kind: extension }, then: allow, say: known here }]';

test('the corpus has at least two hundred lines each way', () => {
  const { agent, editor } = corpus();
  expect(agent.length).toBeGreaterThan(200);
  expect(editor.length).toBeGreaterThanOrEqual(200);
});

test.each([1, 7, 4_096])('the corpus arrives as it left, in pieces of %i bytes', async (size) => {
  const { editor, agent, greeted, prompt } = await openStage({ rules: VENDORS });
  await greeted();
  const lines = corpus(size);
  const done = prompt();
  await agent.received(({ method }) => method === 'session/prompt');
  const beforeAsked = agent.lines.length;
  inPieces(editor, lines.asked, size);
  const asked = (await arrived(agent, beforeAsked + lines.asked.length)).slice(beforeAsked);
  expect([...asked].sort()).toEqual([...lines.asked].sort());
  const [before, beforeEditor] = [agent.lines.length, editor.lines.length];
  inPieces(editor, lines.editor, size);
  expect((await arrived(agent, before + lines.editor.length)).slice(before)).toEqual(lines.editor);
  inPieces(agent, lines.agent, size);
  const received = (await arrived(editor, beforeEditor + lines.agent.length)).slice(beforeEditor);
  // Answers to acts come when they are on record; all else keeps its order.
  const isAnswer = (line: string) => line.startsWith('{"id":');
  expect(received.filter((line) => !isAnswer(line))).toEqual(lines.agent.filter((line) => !isAnswer(line)));
  expect(received.filter(isAnswer).sort()).toEqual(lines.agent.filter(isAnswer).sort());
  agent.say({ id: 2, result: { stopReason: 'end_turn' } });
  await done;
});

test('what is decided arrives as it left too: prompts, questions, files and terminals, and their answers', async () => {
  const rules = '[{ id: held, when: { kind: [fs.write, fs.read, terminal, extension] }, then: allow, say: fine }]';
  const { editor, agent, greeted } = await openStage({ rules });
  await greeted();
  const say = (from: End, to: End, line: string) => {
    const received = to.next((frame) => JSON.stringify(frame) === JSON.stringify(JSON.parse(line)));
    from.raw(`${line}\n`);
    return received;
  };
  const prompt =
    '{"params":{"prompt":[{"text":"caf\\u00e9","type":"text","x":1.0}],"sessionId":"s1","_meta":{"k":9007199254740993}},"id":9007199254740993,"method":"session/prompt","jsonrpc":"2.0"}';
  await say(editor, agent, prompt);
  // A question is shown in our words; what is not about the call and its buttons stays the bytes it was.
  const asks = editor.next(({ method }) => method === 'session/request_permission');
  agent.raw(
    `{"jsonrpc":"2.0","id":1e0,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"kind":"edit","toolCallId":"t1"},"options":${JSON.stringify(OPTIONS)},"z":1.0}}\n`,
  );
  await asks;
  expect(editor.lines.at(-1)).toMatch(
    /^\{"jsonrpc":"2\.0","id":1e0,"method":"session\/request_permission","params":\{"sessionId":"s1","toolCall":\{.*\},"options":\[.*\],"z":1\.0\}\}$/,
  );
  const chosen = '{"id":1e0,"result":{"outcome":{"optionId":"always","outcome":"selected"}},"jsonrpc":"2.0"}';
  await say(editor, agent, chosen);
  const pairs = [
    [
      '{"id":"w","method":"fs/write_text_file","params":{"content":"\\u0041","path":"/repo/project/a","sessionId":"s1"},"jsonrpc":"2.0"}',
      '{"id":"w","result":{},"x":1.0}',
    ],
    [
      '{"id":3,"method":"fs/read_text_file","params":{"path":"/repo/project/a","sessionId":"s1","limit":1.0}}',
      '{"id":3,"result":{"content":"A","extra":-0}}',
    ],
    [
      '{"id":4,"method":"terminal/create","params":{"command":"ls","args":["-l"],"sessionId":"s1","env":[{"name":"K","value":"v"}]}}',
      '{"id":4,"result":{"terminalId":"x1","_meta":null}}',
    ],
    [
      '{"id":5,"method":"terminal/output","params":{"terminalId":"x1","sessionId":"s1"}}',
      '{"id":5,"result":{"output":"hi","truncated":false}}',
    ],
    [
      '{"id":6,"method":"terminal/wait_for_exit","params":{"terminalId":"x1","sessionId":"s1"}}',
      '{"id":6,"result":{"exitCode":0,"q":1.0}}',
    ],
    [
      '{"id":7,"method":"elicitation/create","params":{"sessionId":"s1","mode":"form","message":"?","requestedSchema":{"type":"object","properties":{}}}}',
      '{"id":7,"result":{"action":"accept","content":{}}}',
    ],
    ['{"id":8,"method":"_vendor/needs","params":[1.0]}', '{"id":8,"result":1.0}'],
  ] as const;
  for (const [asked, answered] of pairs) {
    await say(agent, editor, asked);
    await say(editor, agent, answered);
  }
  const result = '{"result":{"stopReason":"end_turn","usage":{"totalTokens":1.0}},"id":9007199254740993}';
  agent.raw(`${result}\n`);
  await arrived(editor, 3 + pairs.length + 1);
  expect(editor.lines.slice(3)).toEqual([...pairs.map(([asked]) => asked), result]);
  expect(agent.lines.slice(2)).toEqual([prompt, chosen, ...pairs.map(([, answered]) => answered)]);
});

test('twenty mebibytes in one line pass both ways', async () => {
  const { editor, agent, greeted } = await openStage();
  await greeted();
  const data = 'QUJD'.repeat((20 * 1024 * 1024) / 4);
  const image = `{"type":"image","mimeType":"image/png","data":"${data}"}`;
  const prompt = `{"jsonrpc":"2.0","id":"big","method":"session/prompt","params":{"sessionId":"s1","prompt":[${image}]}}`;
  editor.raw(`${prompt}\n`);
  await agent.received(({ id }) => id === 'big');
  expect(agent.lines.at(-1) === prompt).toBe(true);
  const shown = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":${image}}}}`;
  const received = editor.next(({ method }) => method === 'session/update');
  agent.raw(`${shown}\n`);
  await received;
  expect(editor.lines.at(-1) === shown).toBe(true);
});

test('a second version of the wire is relayed as it is, and its turn ends with its last update', async () => {
  const { editor, agent, greeted, task } = await openStage();
  await greeted({ init: { protocolVersion: 2 } });
  const asked = editor.ask('session/prompt', { sessionId: 's1', prompt: [{ type: 'text', text: 'go' }] });
  const { id } = await agent.received(({ method }) => method === 'session/prompt');
  agent.say({ id, result: { messageId: 'm1' } });
  expect((await asked).result).toEqual({ messageId: 'm1' });
  expect((await task()).status).toBe('WORKING');
  const idle =
    '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn","x":1.0}}}';
  const over = editor.next(({ params }) => JSON.stringify(params ?? {}).includes('idle'));
  agent.raw(`${idle}\n`);
  await over;
  expect(editor.lines.at(-1)).toBe(idle);
  expect((await task()).status).toBe('COMPLETED');
});

test('ids that a parser takes for one number are answered as they were written', async () => {
  const rules = '[{ id: closed, when: { kind: extension, tool: _vendor/ask }, then: block, say: not here }]';
  const { editor, greeted } = await openStage({ rules });
  await greeted();
  const before = editor.lines.length;
  for (const id of IDS) editor.raw(`{"jsonrpc":"2.0","id":${id},"method":"_vendor/ask"}\n`);
  const lines = (await arrived(editor, before + IDS.length)).slice(before);
  expect(lines.map((line) => /"id":(.*),"error"/.exec(line)?.[1])).toEqual(IDS);
});

test('what an agent says before there is a log goes on at once, and is written down in its order afterwards', async () => {
  const hello = (n: number) => `{"jsonrpc":"2.0",  "method":"_vendor/hello_${n}","params":{"n":1.0}}`;
  const late = update('available_commands_update', { availableCommands: [] });
  const known = `{"jsonrpc":"2.0","method":"session/update","params":${JSON.stringify(late)}}`;
  const said = [hello(1), 'not of the protocol', known, hello(2)];
  const stage = await openStage({ early: said.map((line) => `${line}\n`).join('') });
  // Stray output is for the process's own log.
  expect(stage.editor.lines).toEqual(said.filter((line) => line.startsWith('{')));
  await stage.greeted();
  await expect.poll(() => early(stage)).toEqual(['_vendor/hello_1', 'session/update', '_vendor/hello_2']);
});

test('one that says too much before that has the rest of it counted', async () => {
  const many = Array.from({ length: 300 }, (_, n) => `{"jsonrpc":"2.0","method":"_vendor/n${n}"}\n`);
  const stage = await openStage({ early: many.join('') });
  await stage.editor.received(({ method }) => method === '_vendor/n299');
  await expect.poll(() => early(stage), { timeout: 10_000 }).toHaveLength(256);
  const last = (await stage.home.all()).findLast(({ ext }) => within(ext, 'acp', 'early') === true);
  expect(last?.ext).toEqual({ acp: { early: true, missed: 44 } });
});

async function early({ home }: Stage): Promise<unknown[]> {
  const noted = (await home.all()).filter(({ ext }) => within(ext, 'acp', 'early') === true);
  return noted.map(({ payload }) => payload.method ?? payload);
}

test.each(['agent', 'editor'] as const)(
  'a line of the %s that could be read in two ways, or in none, never crosses',
  async (from) => {
    const stage = await openStage({ rules: VENDORS });
    await stage.greeted();
    const [sender, receiver] = from === 'agent' ? [stage.agent, stage.editor] : [stage.editor, stage.agent];
    const [before, received] = [sender.frames.length, receiver.lines.length];
    for (const line of REFUSED) {
      const refusal = sender.next(({ error }) => error !== undefined);
      sender.raw(line);
      sender.raw('\n');
      expect(String((await refusal).error?.code)).toMatch(/^-32[67]00$/);
    }
    // What comes after it is read as before.
    sender.notify('_vendor/after', {});
    await receiver.received(({ method }) => method === '_vendor/after');
    expect(receiver.lines.slice(received)).toHaveLength(1);
    expect(sender.frames.length - before).toBe(REFUSED.length);
    await expect
      .poll(
        async () =>
          (await stage.home.all()).filter(({ event }) => event === vendorEvent('vendor.acp.frame_refused')).length,
      )
      .toBeGreaterThan(3);
  },
);

test('stray output of an agent, blank lines and answers to nothing are dropped without a word', async () => {
  const stage = await openStage();
  await stage.greeted();
  const [agent, editor] = [stage.agent.lines.length, stage.editor.lines.length];
  for (const line of ['npm warn something', '', '\r', '  ', '42x', '{"jsonrpc":"2.0","id":99,"result":{}}']) {
    stage.agent.raw(`${line}\n`);
  }
  stage.agent.notify('_vendor/after', {});
  await stage.editor.received(({ method }) => method === '_vendor/after');
  expect(stage.editor.lines).toHaveLength(editor + 1);
  expect(stage.agent.lines).toHaveLength(agent);
});

test('a character at which some programs end a line goes on as its escape', async () => {
  const stage = await openStage();
  await stage.greeted();
  stage.agent.raw('{"jsonrpc":"2.0","method":"_vendor/told","params":{"t":"a\u2028b\u2029c\u0085d"}}\n');
  await stage.editor.received(({ method }) => method === '_vendor/told');
  expect(stage.editor.lines.at(-1)).toBe(
    '{"jsonrpc":"2.0","method":"_vendor/told","params":{"t":"a\\u2028b\\u2029c\\u0085d"}}',
  );
});

test('a batch is turned back whole', async () => {
  const { editor, agent, greeted } = await openStage();
  await greeted();
  const before = editor.lines.length;
  const refusal = agent.next(({ error }) => error !== undefined);
  agent.raw('[{"jsonrpc":"2.0","id":1,"method":"terminal/create","params":{"sessionId":"s1","command":"rm"}}]\n');
  expect(await refusal).toEqual({
    jsonrpc: '2.0',
    id: null,
    error: { code: -32600, message: 'one JSON-RPC object at a time' },
  });
  expect(editor.lines.length).toBe(before);
});
