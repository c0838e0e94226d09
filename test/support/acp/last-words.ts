/**
 * An agent that makes three calls and then goes, each time in another way: `a` has completed, `b` has failed, `c` is still running.
 * Its words and its last frames leave it in one write, right before it is gone.
 */
const AGENT = `
const manner = process.argv[1];
const { writeSync, closeSync } = require('node:fs');
const line = (m) => JSON.stringify({ jsonrpc: '2.0', ...m }) + '\\n';
const update = (update) => line({ method: 'session/update', params: { sessionId: 's1', update } });
const begun = (toolCallId) => update({ sessionUpdate: 'tool_call', toolCallId, title: toolCallId, kind: 'execute', status: 'in_progress', rawInput: { command: toolCallId } });
const ended = (toolCallId, status) => update({ sessionUpdate: 'tool_call_update', toolCallId, status, rawOutput: { said: toolCallId } });
const say = (text) => { for (let at = 0, bytes = Buffer.from(text); at < bytes.length; ) at += writeSync(1, bytes, at); };
require('readline').createInterface({ input: process.stdin }).on('line', (text) => {
  const { id, method } = JSON.parse(text);
  if (method === 'initialize') say(line({ id, result: { protocolVersion: 1, agentInfo: { name: 'a', title: String(process.pid), version: '1' } } }));
  if (method === 'session/new') say(line({ id, result: { sessionId: 's1' } }));
  if (method !== 'session/prompt') return;
  const over = line({ id, result: { stopReason: 'end_turn' } });
  const words = update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'so far' } });
  const work = words + ['a', 'b', 'c'].map(begun).join('') + ended('b', 'failed');
  const done = work + ended('a', 'completed');
  switch (manner) {
    case 'exits': say(done); return process.exit(3);
    case 'exits well': say(done); return process.exit(0);
    case 'is killed': say(done); return process.kill(process.pid, 'SIGKILL');
    case 'breaks off': say(done + '{"jsonrpc":"2.0","method":"session/upd'); return process.exit(1);
    case 'breaks off its answer': say(done + over.slice(0, -12)); return process.exit(1);
    case 'says much': say(words.repeat(300) + done); return process.exit(3);
    case 'falls silent': say(done); return closeSync(1);
    case 'ends its turn': return say(done + over);
    case 'is late': return say(done + over + ended('c', 'completed'));
    case 'reports twice': return say(done + ended('a', 'completed') + ended('c', 'completed') + over);
    case 'disagrees': return say(done + ended('a', 'failed') + ended('c', 'completed') + over);
  }
});
setInterval(() => {}, 1e6);
`;

export type LastWords =
  | 'exits'
  | 'exits well'
  | 'is killed'
  | 'breaks off'
  | 'breaks off its answer'
  | 'says much'
  | 'falls silent'
  | 'ends its turn'
  | 'is late'
  | 'reports twice'
  | 'disagrees';

export function agentThat(manner: LastWords): string[] {
  return [process.execPath, '-e', AGENT, manner];
}

/** Ways to go without having answered the prompt, and how that is reported. */
export const GONE: readonly (readonly [LastWords, RegExp])[] = [
  ['exits', /exited with 3/],
  ['exits well', /exited with 0/],
  ['is killed', /SIGKILL/],
  ['breaks off', /exited with 1/],
  ['breaks off its answer', /exited with 1|could not be read/],
  ['says much', /exited with 3/],
  ['falls silent', /closed its output/],
];
