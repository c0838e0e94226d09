/**
 * An agent of the Agent Client Protocol with hands of its own: it follows the words of the demo agent, asks before each call,
 * and does what it was let do with the demo's notes and outbox, in this process. Every effect is a line of the journal.
 */
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { readScript } from '../../../dist/src/demo/script.js';
import { createDemoTools } from '../../../dist/src/demo/tools.js';

const [, , journal] = process.argv;
const tools = createDemoTools({ journal: (line) => appendFileSync(journal, `${line}\n`) });
/** What the protocol calls acts of these effects. */
const KINDS = { read: 'read', write: 'edit', delete: 'delete' };
const OPTIONS = [
  { optionId: 'yes', name: 'Allow', kind: 'allow_once' },
  { optionId: 'no', name: 'Reject', kind: 'reject_once' },
];
const FILES = [
  ['report.md', 'text/markdown', '# Report\n\nNothing went wrong.\n'],
  [
    'report.patch',
    'text/x-diff',
    '--- a/report.md\n+++ b/report.md\n@@ -1 +1,3 @@\n # Report\n+\n+Nothing went wrong.\n',
  ],
];

const write = (frame) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...frame })}\n`);
const waiting = new Map();
let asked = 0;
let stop = new AbortController();

function request(method, params) {
  asked += 1;
  const id = `agent-${asked}`;
  write({ id, method, params });
  return new Promise((resolve) => waiting.set(id, resolve));
}

async function prompt({ sessionId, prompt: blocks }) {
  stop = new AbortController();
  const { signal } = stop;
  const update = (body) => write({ method: 'session/update', params: { sessionId, update: body } });
  const say = (text) => update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } });
  // The last block is the prompt itself: notes of the gateway come before it.
  const steps = readScript(blocks.findLast(({ type }) => type === 'text')?.text ?? '');

  async function call({ tool, arguments: args, effect, intent }, toolCallId) {
    const shown = { toolCallId, title: tool, name: tool, kind: KINDS[effect] ?? 'other', rawInput: args };
    update({ sessionUpdate: 'tool_call', status: 'pending', ...shown });
    const { result } = await request('session/request_permission', { sessionId, toolCall: shown, options: OPTIONS });
    if (result?.outcome?.optionId !== 'yes') {
      update({ sessionUpdate: 'tool_call_update', toolCallId, status: 'failed' });
      if (signal.aborted) return;
      return say(`I was not allowed to ${intent}: ${result?._meta?.tollbridge?.reason ?? 'nobody said why'}`);
    }
    update({ sessionUpdate: 'tool_call_update', toolCallId, status: 'in_progress' });
    if (tool === 'slow_mail') {
      appendFileSync(journal, `begun ${tool}\n`);
      await pause(60_000, undefined, { signal }).catch(() => {});
      return update({ sessionUpdate: 'tool_call_update', toolCallId, status: 'failed' });
    }
    const { output, error } = await tools.call(
      { kind: 'tool', tool, tool_call_id: toolCallId, arguments: args },
      signal,
    );
    const text = output?.text ?? `I could not ${intent}: ${error}`;
    const content = [{ type: 'content', content: { type: 'text', text } }];
    const status = output ? 'completed' : 'failed';
    update({ sessionUpdate: 'tool_call_update', toolCallId, status, content, rawOutput: output ?? { error } });
    say(text);
  }

  for (const [at, step] of steps.entries()) {
    if (signal.aborted) break;
    if (step.do === 'say') for (const piece of step.text.match(/(?:\S+\s*){1,3}/g)) say(piece);
    else if (step.do === 'call') await call(step, `call-${sessionId}-${at + 1}`);
    else if (step.do === 'ask') {
      const properties = { answer: { type: 'string', title: step.question } };
      const requestedSchema = { type: 'object', properties, required: ['answer'] };
      const form = { mode: 'form', sessionId, message: step.question, requestedSchema };
      const { result } = await request('elicitation/create', form);
      say(result?.action === 'accept' ? `You said: ${result.content.answer}` : 'I got no answer.');
    } else if (step.do === 'work') {
      for (let done = 1; done <= step.steps && !signal.aborted; done += 1) {
        await pause(100, undefined, { signal }).catch(() => {});
        if (!signal.aborted) say(`step ${done} of ${step.steps}\n`);
      }
    } else if (step.do === 'artifact') {
      say('I wrote report.md, and a patch that shows what changed.');
      for (const [name, mimeType, text] of FILES) {
        const content = { type: 'resource', resource: { uri: `file:///${name}`, mimeType, text } };
        update({ sessionUpdate: 'agent_message_chunk', content });
      }
    } else if (step.do === 'fail') {
      throw { code: -32000, message: 'the demo agent was asked to fail', data: { code: step.code } };
    } else throw { code: -32000, message: `this agent cannot ${step.do}`, data: { code: 'not_supported' } };
  }
  return { stopReason: signal.aborted ? 'cancelled' : 'end_turn' };
}

const SERVED = {
  initialize: () => ({
    protocolVersion: 1,
    agentInfo: { name: 'teller', version: '1' },
    agentCapabilities: { promptCapabilities: { embeddedContext: true } },
  }),
  'session/new': () => ({ sessionId: `s${process.pid}` }),
  'session/prompt': prompt,
};

createInterface({ input: process.stdin }).on('line', async (line) => {
  const { id, method, params, ...answer } = JSON.parse(line);
  if (method === 'session/cancel') stop.abort();
  if (method === undefined) {
    waiting.get(id)?.(answer);
    return;
  }
  if (id === undefined) return;
  const serve = SERVED[method];
  try {
    if (!serve) throw { code: -32601, message: `there is no ${method} here` };
    write({ id, result: await serve(params) });
  } catch ({ code = -32603, message, data }) {
    write({ id, error: { code, message, ...(data && { data }) } });
  }
});
process.stdin.on('end', () => process.exit(0));
