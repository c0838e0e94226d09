/** Callers that start the command themselves and speak to it line by line, until it is gone from one moment to the next. */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type CallLedger, toolOf } from './ledger.ts';

export interface CallersLocation {
  readonly program: string;
  readonly config: string;
  /** One line per call that reached the tool server. */
  readonly journal: string;
}

/** One that makes calls as fast as they are answered. */
export interface Caller {
  /** It has received a refusal and an answer, or it is gone. */
  readonly atWork: Promise<void>;
  kill(): Promise<void>;
}

type Frame = { readonly id?: unknown; readonly method?: string; readonly params?: never; readonly result?: never };

const alive = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of alive) child.kill('SIGKILL');
});

interface Line {
  say(frame: object): void;
  ask(method: string, params: object): Promise<Frame>;
}

function start(
  location: CallersLocation,
  words: readonly string[],
  live: (line: Line, worked: () => void) => Promise<void>,
  received: (frame: Frame) => void = () => {},
): Caller {
  const child = spawn(process.execPath, [location.program, '--config', location.config, ...words], {
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  alive.add(child);
  child.stdin.on('error', () => {});
  const waiting = new Map<unknown, (frame: Frame) => void>();
  const gone = new Promise<void>((resolve) => child.once('close', () => resolve()));
  void gone.then(() => alive.delete(child));
  createInterface({ input: child.stdout }).on('line', (text) => {
    const frame = parsed(text);
    if (!frame) return; // cut by the kill
    if (frame.method === undefined) waiting.get(frame.id)?.(frame);
    else received(frame);
  });
  let count = 0;
  const say = (frame: object) => void child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...frame })}\n`);
  const line: Line = {
    say,
    ask(method, params) {
      count += 1;
      const id = `r${count}`;
      say({ id, method, params });
      return new Promise((resolve) => waiting.set(id, resolve));
    },
  };
  const atWork = new Promise<void>((resolve) => {
    void live(line, resolve);
    void gone.then(resolve);
  });
  return {
    atWork,
    async kill() {
      child.kill('SIGKILL');
      await gone;
    },
  };
}

function parsed(text: string): Frame | undefined {
  try {
    return JSON.parse(text) as Frame;
  } catch {
    return undefined;
  }
}

const SERVER = join(import.meta.dirname, 'tool-server.mjs');
const AGENT = join(import.meta.dirname, 'agent.mjs');

/** The command of the tool server. */
export const toolServer = ({ journal }: Pick<CallersLocation, 'journal'>) => [process.execPath, SERVER, journal];

export function mcpOverStdio(location: CallersLocation, ledger: CallLedger, name: string): Caller {
  return start(location, ['mcp', '--name', 'box', '--', ...toolServer(location)], async ({ say, ask }, worked) => {
    const greeting = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'c', version: '1' } };
    await ask('initialize', greeting);
    say({ method: 'notifications/initialized' });
    for (let count = 1; ; count += 1) {
      const tool = toolOf(count);
      const call = ledger.want('mcp over stdio', `${name}-${count}.`, tool);
      const { result } = await ask('tools/call', { name: tool, arguments: { text: call.nonce } });
      call.received = (result as { isError?: boolean } | undefined)?.isError ? 'refused' : 'succeeded';
      if (count > 3) worked();
    }
  });
}

export const ahpEvent = (session: string, event_type: string, payload: object) => ({
  event_type,
  session_id: session,
  agent_id: 'a',
  timestamp: new Date().toISOString(),
  depth: 0,
  payload,
});

export function ahpOverStdio(location: CallersLocation, ledger: CallLedger, name: string): Caller {
  return start(location, ['ahp', '--stdio'], async ({ say, ask }, worked) => {
    for (let count = 1; ; count += 1) {
      const tool_name = count % 7 === 1 ? 'forbidden' : 'note';
      const call = ledger.want('ahp over stdio', `${name}-${count}.`);
      const act = { tool_name, arguments: { text: call.nonce } };
      const { result } = await ask('ahp/event', ahpEvent(name, 'pre_action', act));
      call.received = (result as { decision?: string } | undefined)?.decision === 'allow' ? 'may run' : 'refused';
      if (count > 1) worked();
      const came = { success: call.received === 'may run', output: 'x' };
      say({ method: 'ahp/event', params: ahpEvent(name, 'post_action', { ...act, result: came }) });
    }
  });
}

export function acpRelay(location: CallersLocation, ledger: CallLedger, name: string): Caller {
  let first: () => void = () => {};
  const received = ({ params }: Frame) => {
    const { update } = (params ?? {}) as { update?: { toolCallId?: string; status?: string } };
    if (!update?.toolCallId) return;
    const known = ledger.calls.find(({ nonce }) => nonce === update.toolCallId);
    const call = known ?? ledger.want('acp relay', update.toolCallId);
    if (update.status !== 'completed') return;
    // It is in the log before the editor is shown it.
    call.received = 'succeeded';
    first();
  };
  const words = ['acp', '--name', 'scripted', '--', process.execPath, AGENT];
  return start(
    location,
    words,
    async ({ ask }, worked) => {
      first = worked;
      await ask('initialize', { protocolVersion: 1 });
      await ask('session/new', { cwd: import.meta.dirname, mcpServers: [] });
      await ask('session/prompt', { sessionId: 's1', prompt: [{ type: 'text', text: name }] });
    },
    received,
  );
}
