/** Everything the measurement starts: the server behind, the gateways before it, and the process that puts load on them. */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createServer } from 'node:net';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { tool } from '../../test/conformance/mcp/tools.ts';
import { type Started, started, startSide } from '../sides/process.ts';
import type { Report, Target, Wanted } from './load.ts';

const progress = (line: string) => process.stderr.write(`${line}\n`);

/** How everyone starts the server behind: by the Node that the other gateways need. */
export async function echoCommand(): Promise<readonly string[]> {
  const [node] = await tool('conformance', progress);
  return [node as string, fileURLToPath(new URL('./echo.js', import.meta.url))];
}

/** `--legacy` for one that knows only the older era. */
export async function startEcho(...flags: readonly string[]): Promise<Started> {
  const [node, file] = await echoCommand();
  return await startSide([file as string, '--http', ...flags], node);
}

/** Keeps a record and does nothing else, before a port or a program. */
export async function startLeast(upstream: readonly string[], oneSync = false): Promise<Started> {
  const flags = oneSync ? ['--one-sync'] : [];
  return await startSide([fileURLToPath(new URL('./least.js', import.meta.url)), ...flags, ...upstream]);
}

/** Where its log is, when it is not a file, and what the gateway finds in its environment. */
export interface StoreOfOurs {
  readonly section?: object;
  readonly env?: Readonly<Record<string, string>>;
}

/** Ours, in a process of its own like all the others. */
export async function startOurs(
  upstreams: object,
  execArgv: readonly string[] = [],
  store: StoreOfOurs = {},
): Promise<Started> {
  return await startSide([
    ...execArgv,
    fileURLToPath(new URL('./gateway.js', import.meta.url)),
    JSON.stringify(store),
    JSON.stringify(upstreams),
  ]);
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

/** The Rust program of the same name (`cargo install mcp-proxy`), where there is one; it keeps no log and runs one program for all. */
export async function startRustMcpProxy(command: readonly string[]): Promise<Started | undefined> {
  const program = process.env.BENCH_RUST_MCP_PROXY ?? join(homedir(), '.cargo', 'bin', 'mcp-proxy');
  if (!existsSync(program)) {
    progress('no Rust mcp-proxy here: cargo install mcp-proxy, or name it in BENCH_RUST_MCP_PROXY');
    return undefined;
  }
  const port = await freePort();
  const child = spawn(program, ['--port', String(port), '--host', '127.0.0.1', '--', ...command], { stdio: 'ignore' });
  return await answering('Rust mcp-proxy', child, port);
}

async function startOther(name: string, args: readonly string[], port: number): Promise<Started> {
  const [node, program] = await tool(name, progress);
  return await answering(name, spawn(node as string, [program as string, ...args], { stdio: 'ignore' }), port);
}

async function answering(name: string, child: ChildProcess, port: number): Promise<Started> {
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
    new Promise<Report>((resolve, reject) => {
      child.once('message', (report: Report) => (report.trouble ? reject(new Error(report.trouble)) : resolve(report)));
      child.send(wanted);
    });
  return {
    open: (target: Target) => ask({ do: 'open', target }),
    run: (name: string, ms: number) => ask({ do: 'run', name, ms }),
    close: () => void child.kill(),
  };
}
