/** A contender in a process of its own: started, known by its port, and asked what it costs. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';

export interface Started {
  readonly port: number;
  /** For those who ask who is there. */
  readonly token?: string;
  /** The file of its log, where it has one. */
  readonly log?: string;
  readonly pid: number;
  /** Resolves once it is gone: for those that remove what it uses. */
  close(): Promise<void>;
}

export function started(child: ChildProcess, port: number): Started {
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  return {
    port,
    pid: child.pid as number,
    close() {
      child.kill();
      return ended;
    },
  };
}

/** Started by Node, or by another one that is named. The first line it prints is its port, and its token and its log if it has them. */
export async function startSide(args: readonly string[], node: string = process.execPath): Promise<Started> {
  const child = spawn(node, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const line = await new Promise<string>((resolve, reject) => {
    child.stdout.setEncoding('utf8').once('data', resolve);
    child.once('exit', () => reject(new Error(`${child.spawnargs.join(' ')} did not start`)));
  });
  const [port, token, log] = line.trim().split(' ');
  return { ...started(child, Number(port)), ...(token && { token }), ...(log && { log }) };
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
