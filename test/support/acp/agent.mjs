/**
 * An agent of the Agent Client Protocol that does what its prompt says, as plain lines over stdio: a list of steps in JSON,
 * or words it repeats. What it is able to be is said on its command line. It keeps its sessions in a file when given one,
 * so that one started after it can load them.
 */
import { spawn } from 'node:child_process';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const options = JSON.parse(process.argv[2] ?? '{}');
const waiting = new Map();
const canceled = new Set();
const wake = new Map();
let ids = 0;
let sessions = 0;

const write = (frame) => process.stdout.write(`${JSON.stringify(frame)}\n`);
const note = (text) => options.journal && appendFileSync(options.journal, `${text}\n`);
note(`pid ${process.pid}`);
if (options.stray) process.stdout.write('this is not of the protocol\n');
if (options.stderr) process.stderr.write(`${options.stderr}\n`);
if (options.env) note(`env ${options.env}=${process.env[options.env] ?? ''}`);
if (options.ignoreTerm) process.on('SIGTERM', () => {});

function call(method, params) {
  const id = ids++;
  write({ jsonrpc: '2.0', id, method, params });
  return new Promise((resolve) => waiting.set(id, resolve));
}

/** Once this file is there, the agent no longer wants to know. */
async function takeBack(requestId, file) {
  while (!existsSync(file)) await new Promise((resolve) => setTimeout(resolve, 5));
  write({ jsonrpc: '2.0', method: '$/cancel_request', params: { requestId } });
}

async function act(step, sessionId, say) {
  if (step.update)
    return write({ jsonrpc: '2.0', method: 'session/update', params: { sessionId, update: step.update } });
  if (step.frame) return write(step.frame);
  if (step.line) return process.stdout.write(`${step.line}\n`);
  if (step.ask) {
    const asked = call(step.ask, { sessionId, ...step.params });
    if (step.takeBackWhen) await takeBack(ids - 1, step.takeBackWhen);
    const answer = await asked;
    note(`answer ${JSON.stringify(answer.result ?? answer.error)}`);
    if (step.as) named.set(step.as, answer.result);
    if (step.quiet) return;
    say(JSON.stringify(answer.result ?? { error: answer.error }));
  }
  if (step.terminal) {
    const { result: made, error } = await call('terminal/create', { sessionId, ...step.terminal });
    if (error) return say(JSON.stringify({ error }));
    const at = { sessionId, terminalId: made.terminalId };
    if (step.kill) await call('terminal/kill', at);
    if (step.abandon) return;
    const { result: exit } = await call('terminal/wait_for_exit', at);
    const { result: output } = await call('terminal/output', at);
    await call('terminal/release', at);
    return say(JSON.stringify({ ...exit, output: output.output, truncated: output.truncated }));
  }
  if (step.say) return say(step.say);
  if (step.spawn) {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], {
      stdio: 'ignore',
      detached: step.spawn === 'detached',
    });
    child.unref();
    return note(`pid ${child.pid}`);
  }
  if (step.exit !== undefined) process.exit(step.exit);
  if (step.kill) process.kill(process.pid, step.kill);
  if (step.hang) await new Promise(() => {});
  if (step.untilCanceled && !canceled.has(sessionId)) {
    note('waiting');
    await new Promise((resolve) => wake.set(sessionId, resolve));
  }
}
const named = new Map();

async function prompt({ sessionId, prompt: blocks }) {
  note(`prompt ${JSON.stringify(blocks)}`);
  canceled.delete(sessionId);
  const say = (text) =>
    write({
      jsonrpc: '2.0',
      method: 'session/update',
      params: { sessionId, update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } } },
    });
  const text = blocks.findLast((block) => block.type === 'text')?.text ?? '';
  if (!text.startsWith('[')) {
    say(`you said: ${text}`);
    return { result: { stopReason: 'end_turn' } };
  }
  for (const step of JSON.parse(text)) {
    if (step.result || step.error) return step;
    await act(step, sessionId, say);
    if (canceled.has(sessionId) && !options.ignoreCancel) {
      if (options.cancelError) return { error: { code: -32603, message: 'Request was aborted.' } };
      return { result: { stopReason: 'cancelled' } };
    }
  }
  return { result: { stopReason: 'end_turn' } };
}

async function serve(method, params) {
  switch (method) {
    case 'initialize':
      if (options.hangAtStart) await new Promise(() => {});
      note(`initialize ${JSON.stringify(params)}`);
      return {
        result: {
          protocolVersion: options.version ?? 1,
          agentCapabilities: options.can ?? {},
          agentInfo: options.info ?? { name: 'scripted', version: '1.2.3' },
          authMethods: options.authMethods ?? [],
        },
      };
    case 'authenticate':
      options.wantsLogin = false;
      return { result: {} };
    case 'session/new': {
      note(`new ${JSON.stringify(params)}`);
      if (options.wantsLogin) return { error: { code: -32000, message: 'Authentication required' } };
      const sessionId = `s-${process.pid}-${++sessions}`;
      if (options.memory) appendFileSync(options.memory, `${sessionId}\n`);
      if (options.opensWith) {
        const params = { sessionId, update: options.opensWith };
        setImmediate(write, { jsonrpc: '2.0', method: 'session/update', params });
      }
      return { result: { sessionId, ...(options.modes && { modes: options.modes }) } };
    }
    case 'session/load':
    case 'session/resume': {
      const known = existsSync(options.memory ?? '') ? readFileSync(options.memory, 'utf8') : undefined;
      note(`${method} ${params.sessionId}`);
      if (!known?.includes(params.sessionId)) return { error: { code: -32603, message: 'no such session' } };
      const old = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'an old word' } };
      if (method === 'session/load') {
        write({ jsonrpc: '2.0', method: 'session/update', params: { sessionId: params.sessionId, update: old } });
      }
      return { result: {} };
    }
    case 'session/set_mode':
      note(`mode ${params.modeId}`);
      return { result: {} };
    case 'session/prompt':
      return await prompt(params);
    case 'harn.hitl.respond':
      note(`hitl ${JSON.stringify(params)}`);
      return { result: { ok: true } };
    case '_harn/providerCatalog':
      return { result: { schemaVersion: 2, providers: [{ id: 'local' }] } };
    default:
      return { error: { code: -32601, message: `no ${method}` } };
  }
}

const lines = createInterface({ input: process.stdin });
lines.on('line', async (line) => {
  const { id, method, params, result, error } = JSON.parse(line);
  if (method === undefined) {
    waiting.get(id)?.({ result, error });
    waiting.delete(id);
  } else if (id !== undefined) {
    write({ jsonrpc: '2.0', id, ...(await serve(method, params)) });
  } else if (method === 'session/cancel') {
    note('cancel');
    canceled.add(params.sessionId);
    if (!options.ignoreCancel) wake.get(params.sessionId)?.();
  }
});
lines.on('close', () => {
  if (!options.ignoreEnd) process.exit(0);
});
if (options.ignoreEnd) setInterval(() => {}, 1000);
