/**
 * The other processes of the measurements with an agent in them, by role: an agent that says what the prompt asks it to, and a bare
 * pump that stands where our relay stands, splits lines and hands them on without looking.
 */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';

const CHUNK = (at: number) =>
  `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","messageId":"m1","content":{"type":"text","text":"word ${at} of what an agent streams "}}}}\n`;

/** Answers everything; a prompt says how many chunks it wants first. */
function agent(): void {
  const answer = (id: unknown, result: object) =>
    process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`);
  createInterface({ input: process.stdin }).on('line', async (line) => {
    const { id, method, params } = JSON.parse(line);
    if (method === 'session/new') answer(id, { sessionId: 's1' });
    else if (method === 'initialize') answer(id, { protocolVersion: 1 });
    else if (method === 'session/prompt') {
      await stream(Number(params.prompt[0].text));
      answer(id, { stopReason: 'end_turn' });
    } else if (id !== undefined) answer(id, {});
  });
  process.stdin.on('end', () => process.exit(0));
}

/** One write each, as agents do: a chunk is said when it is there. */
async function stream(count: number): Promise<void> {
  for (let at = 0; at < count; at += 1) {
    if (!process.stdout.write(CHUNK(at))) await new Promise((resolve) => process.stdout.once('drain', resolve));
  }
}

function pump(command: readonly string[]): void {
  const [program = '', ...args] = command;
  // In a session of its own, as we start agents: a busy scheduler shares out its time by session.
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'], detached: true });
  lines(process.stdin, child.stdin);
  lines(child.stdout, process.stdout);
}

function lines(source: Readable, sink: Writable): void {
  let rest: Buffer[] = [];
  source.on('data', (chunk: Buffer) => {
    const out: Buffer[] = [];
    let from = 0;
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
      out.push(...rest, chunk.subarray(from, at + 1));
      rest = [];
      from = at + 1;
    }
    if (from < chunk.length) rest.push(chunk.subarray(from));
    if (out.length > 0 && !sink.write(Buffer.concat(out))) {
      source.pause();
      sink.once('drain', () => source.resume());
    }
  });
  source.on('end', () => sink.end());
}

export const PLAYERS = fileURLToPath(import.meta.url);

if (process.argv[1] === PLAYERS) {
  const [role, ...command] = process.argv.slice(2);
  if (role === 'agent') agent();
  if (role === 'pump') pump(command);
}
