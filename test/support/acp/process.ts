/**
 * The command as an editor starts it, with agents that are programs of their own. Every process here carries a mark that
 * whatever it starts inherits, so that nothing can be left behind unseen.
 */

import type { ChildProcess } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { eventually } from '../eventually.ts';
import { type Spoken, startSpeaking } from '../process/stdio-process.ts';
import type { End } from '../wire/line-end.ts';

/** How an agent behaves: heeds the end of its input, ignores it, or leaves a command of its own running. */
export type Manner = 'polite' | 'deaf' | 'leaves';

/** One prompt: says a word, asks for leave, and never ends its turn. `say it` ends at once. */
const AGENT = `
const manner = process.argv[1];
const send = (m) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\\n');
if (manner !== 'polite') process.on('SIGTERM', () => {});
if (manner === 'leaves') require('child_process').spawn('sleep', ['600'], { detached: true, stdio: 'ignore' }).unref();
process.stderr.write('agent ' + process.pid + '\\n');
require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'initialize') send({ id, result: { protocolVersion: 1, agentInfo: { name: 'a', title: String(process.pid), version: '1' } } });
  if (method === 'session/new') send({ id, result: { sessionId: 's1' } });
  if (method !== 'session/prompt') return;
  send({ method: 'session/update', params: { sessionId: 's1', update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'hm' } } } });
  if (params.prompt.some(({ text }) => text === 'say it')) return send({ id, result: { stopReason: 'end_turn' } });
  const toolCall = { toolCallId: 't1', title: 'Edit', kind: 'edit' };
  send({ id: 0, method: 'session/request_permission', params: { sessionId: 's1', toolCall, options: [{ optionId: 'y', name: 'Y', kind: 'allow_once' }] } });
});
process.stdin.on('end', () => manner === 'polite' && process.exit(0));
setInterval(() => {}, 1e6);
`;

export interface Running extends Pick<Spoken, 'stderr' | 'exited'> {
  readonly editor: End;
  readonly relay: ChildProcess;
  /** Greets, opens a session, and gives the agent something to do. */
  work(text?: string): Promise<{ agentPid: number; done: ReturnType<End['ask']> }>;
  /** The editor is gone from one moment to the next. */
  drop(): void;
}

export interface StartOptions {
  readonly dir: string;
  readonly manner?: Manner;
  readonly mark?: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  /** Its name in the log; null: what it calls itself. */
  readonly name?: string | null;
  /** Before the command's own name. */
  readonly before?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export function startRelay({
  dir,
  manner = 'polite',
  mark = 'none',
  command,
  args = [],
  name = 'scripted',
  before = [],
  env = {},
}: StartOptions): Running {
  const agent = command ?? [process.execPath, '-e', AGENT, manner];
  const words = ['--data', dir, ...before, 'acp', ...(name === null ? [] : ['--name', name]), ...args, '--', ...agent];
  const { child: relay, end: editor, stderr, exited } = startSpeaking(words, { env: { [MARK]: mark, ...env } });
  return {
    editor,
    relay,
    exited,
    stderr,
    async work(text = 'go') {
      const { result } = await editor.ask('initialize', { protocolVersion: 1 });
      await editor.ask('session/new', { cwd: dir, mcpServers: [] });
      const done = editor.ask('session/prompt', { sessionId: 's1', prompt: [{ type: 'text', text }] });
      if (text === 'go') await editor.received(({ method }) => method === 'session/request_permission');
      return { agentPid: Number((result?.agentInfo as { title?: string } | undefined)?.title), done };
    },
    drop() {
      relay.stdin.destroy();
      relay.stdout.destroy();
      relay.stderr.destroy();
    },
  };
}

const MARK = 'TOLLBRIDGE_TEST_MARK';

/** Process ids that carry the mark and still run. */
export async function left(mark: string): Promise<number[]> {
  const ids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const looked = await Promise.all(
    ids.map(async (id) => {
      const [stat, environment] = await Promise.all([
        readFile(`/proc/${id}/stat`, 'latin1').catch(() => ''),
        readFile(`/proc/${id}/environ`, 'latin1').catch(() => ''),
      ]);
      return /\) [ZX] /.test(stat) || !environment.split('\0').includes(`${MARK}=${mark}`) ? [] : [Number(id)];
    }),
  );
  return looked.flat();
}

/** Waits until no process with this mark is left; resolves with those that are, once the time is up. */
export async function eventuallyNone(mark: string, ms = 15_000): Promise<number[]> {
  const none = async () => (await left(mark)).length === 0;
  await eventually(none, 'every process to end', { timeoutMs: ms }).catch(() => {});
  return await left(mark);
}
