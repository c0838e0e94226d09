/** Everything the measurement starts: the server behind, the gateways before it, and the process that puts load on them. */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { tool } from '../../test/conformance/mcp/tools.ts';
import type { Place, Told, Wanted } from './load.ts';

const tell = (line: string) => process.stderr.write(`${line}\n`);

export interface Started {
  readonly port: number;
  /** For those who ask who is there. */
  readonly token?: string;
  readonly pid: number;
  close(): void;
}

function started(child: ChildProcess, port: number): Started {
  return { port, pid: child.pid as number, close: () => void child.kill() };
}

/** The first line it prints is its port, and its token if it has one. */
async function printed(child: ChildProcess): Promise<Started> {
  const line = await new Promise<string>((resolve, reject) => {
    child.stdout?.setEncoding('utf8').once('data', resolve);
    child.once('exit', () => reject(new Error(`${child.spawnargs.join(' ')} did not start`)));
  });
  const [port, token] = line.trim().split(' ');
  return { ...started(child, Number(port)), ...(token && { token }) };
}

/** How everyone starts the server behind: by the Node that the other gateways need. */
export async function echoCommand(): Promise<readonly string[]> {
  const [node] = await tool('conformance', tell);
  return [node as string, fileURLToPath(new URL('./echo.js', import.meta.url))];
}

export async function startEcho(): Promise<Started> {
  const [node, file] = await echoCommand();
  return await printed(spawn(node as string, [file as string, '--http'], { stdio: ['ignore', 'pipe', 'inherit'] }));
}

/** Before the server over HTTP: keeps a record and does nothing else. */
export async function startLeast(echoPort: number): Promise<Started> {
  const args = [fileURLToPath(new URL('./least.js', import.meta.url)), String(echoPort)];
  return await printed(spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] }));
}

/** Ours, in a process of its own like all the others. */
export async function startOurs(upstreams: object, execArgv: readonly string[] = []): Promise<Started> {
  const args = [...execArgv, fileURLToPath(new URL('./gateway.js', import.meta.url)), JSON.stringify(upstreams)];
  return await printed(spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] }));
}

export async function startMcpProxy(command: readonly string[]): Promise<Started> {
  const port = await freePort();
  const options = ['--port', String(port), '--host', '127.0.0.1', '--server', 'stream', '--no-eventStore'];
  return await startOther('mcp-proxy', [...options, '--', ...command], port);
}

export async function startSupergateway(command: readonly string[]): Promise<Started> {
  const port = await freePort();
  const transport = ['--outputTransport', 'streamableHttp', '--stateful', '--logLevel', 'none'];
  return await startOther('supergateway', ['--stdio', command.join(' '), '--port', String(port), ...transport], port);
}

async function startOther(name: string, args: readonly string[], port: number): Promise<Started> {
  const [node, program] = await tool(name, tell);
  const child = spawn(node as string, [program as string, ...args], { stdio: 'ignore' });
  for (let tries = 0; tries < 200; tries += 1) {
    const up = await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined);
    if (up) return started(child, port);
    await pause(50);
  }
  child.kill();
  throw new Error(`${name} did not start`);
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

export function startLoad() {
  const child = fork(fileURLToPath(new URL('./load.js', import.meta.url)));
  const ask = (wanted: Wanted) =>
    new Promise<Told>((resolve, reject) => {
      child.once('message', (told: Told) => (told.trouble ? reject(new Error(told.trouble)) : resolve(told)));
      child.send(wanted);
    });
  return {
    open: (place: Place) => ask({ do: 'open', place }),
    run: (name: string, ms: number) => ask({ do: 'run', name, ms }),
    close: () => void child.kill(),
  };
}

/** What it holds in memory, in MiB. */
export function residentOf(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

/** Processor time it has used so far, in ms, by all of its threads. */
export function processorMsOf(pid: number): number {
  // The name, in brackets, may hold anything; user and system time are the twelfth and thirteenth after it, in ticks of 10 ms.
  const [user, system] = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ')
    .slice(11, 13);
  return (Number(user) + Number(system)) * 10;
}
