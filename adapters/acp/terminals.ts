/**
 * Commands, run for an agent through the gate: the other way to hold what it does. The act lasts as long as the command;
 * its output is kept as a log when it is over. A task that ends takes its terminals with it.
 */

import { isAbsolute } from 'node:path';
import { LOADING_VARIABLES } from '../../mappings/acp-acts.ts';
import { asText, Fault, type JsonObject, type Sink, type ToolResult } from '../../src/index.ts';
import { type Child, startChild } from '../../src/wire/child.ts';
import { minimalEnvironment } from '../../src/wire/environment.ts';
import { sha256 } from './effects.ts';
import { createOutput, type Output } from './output.ts';
import type { Reading } from './reading.ts';
import { listOf, numberOf, textOf, within } from './shapes.ts';

export interface TerminalsDeps {
  readonly sink: Sink;
  readonly reading: Pick<Reading, 'servedBy'>;
  readonly taskId: string;
  readonly cwd: string;
  /** The agent, as it names itself. */
  readonly agent: string;
  readonly blocked: 'exit126' | 'error';
  readonly inherit: readonly string[];
  readonly graceMs: number;
}

export interface Terminals {
  create(params: JsonObject, withdrawn: AbortSignal): Promise<JsonObject>;
  output(params: JsonObject): JsonObject;
  exit(params: JsonObject, signal: AbortSignal): Promise<JsonObject>;
  kill(params: JsonObject): Promise<JsonObject>;
  release(params: JsonObject): Promise<JsonObject>;
  /** Everything still running is ended. */
  close(): Promise<void>;
}

interface Exit {
  readonly exitCode: number | null;
  readonly signal: string | null;
}
interface Terminal {
  readonly output: Output;
  readonly done: Promise<Exit>;
  exit: Exit | undefined;
  kill(): Promise<void>;
}

const DEFAULT_LIMIT = 1024 * 1024;
/** Of what a command says, no more than this is kept as its log. */
const KEPT = 8 * 1024 * 1024;
const MOST = 64;

export function createTerminals(deps: TerminalsDeps): Terminals {
  const { sink, reading, taskId, cwd, blocked, graceMs } = deps;
  const open = new Map<string, Terminal>();
  let count = 0;

  function find({ terminalId }: JsonObject): Terminal {
    const found = open.get(asText(terminalId));
    if (!found) throw new Fault('not_found', `there is no terminal ${asText(terminalId).slice(0, 80)}`);
    return found;
  }

  async function run(
    args: JsonObject,
    given: Environment,
    output: Output,
    signal: AbortSignal,
    started: (t: Terminal) => void,
  ) {
    const child = await startChild({
      command: asCommand(args),
      cwd: textOf(args.cwd) ?? cwd,
      env: { ...minimalEnvironment(deps.inherit), ...given },
    });
    child.stdin.end();
    child.stdout.on('data', (chunk: Buffer) => output.add(chunk));
    const ended = new Promise<void>((resolve) => child.stdout.once('close', () => resolve()));
    const terminal: Terminal = {
      output,
      exit: undefined,
      done: exitOf(child, ended),
      kill: () => child.close(graceMs),
    };
    const stop = () => void child.close(graceMs).catch(() => {});
    signal.addEventListener('abort', stop, { once: true });
    started(terminal);
    try {
      terminal.exit = await terminal.done;
    } finally {
      signal.removeEventListener('abort', stop);
      // Also what it left running in the background.
      await child.close(graceMs);
    }
    return terminal.exit;
  }

  return {
    async create(params, withdrawn) {
      const command = textOf(params.command);
      if (!command) throw new Fault('invalid_request', 'command must be a text', { param: '/command' });
      const where = textOf(params.cwd);
      if (where !== undefined && !isAbsolute(where)) {
        throw new Fault('invalid_request', 'cwd must be an absolute path', { param: '/cwd' });
      }
      if (open.size >= MOST) throw new Fault('conflict', `no more than ${MOST} terminals at once`);
      count += 1;
      const id = `${taskId}.terminal${count}`;
      const given = environmentIn(params);
      const args = listOf(params.args).map(String);
      const output = createOutput(numberOf(params.outputByteLimit) ?? DEFAULT_LIMIT, KEPT);
      const served = reading.servedBy({});
      let started: (terminal: Terminal) => void = () => {};
      const running = new Promise<Terminal>((resolve) => {
        started = resolve;
      });
      const acting = sink.act(
        {
          kind: 'terminal',
          tool: 'terminal',
          tool_call_id: id,
          target: [command, ...args].join(' ').slice(0, 2_000),
          arguments: { command, args, cwd: where ?? cwd, env: variablesShown(given) },
          effect: 'execute',
          claims: { agent: deps.agent },
          cwd,
          attributes: {
            shell: isShellLine(command, args),
            ...(served && { linked_to: served.id, linked_by: served.by }),
          },
        },
        async (allowed, signal) => result(await run(allowed, given, output, signal, started), output),
        withdrawn,
      );
      acting.catch(() => {}); // looked at below, or told by the terminal itself
      const first = await Promise.race([running, acting]);
      if (!('kind' in first)) {
        open.set(id, first);
        return { terminalId: id };
      }
      if (first.kind === 'done') throw new Fault('not_found', first.result.error ?? 'the command could not be started');
      if (blocked === 'error') throw new Fault('policy_violation', first.reason);
      open.set(id, refused(first.reason));
      return { terminalId: id };
    },

    output(params) {
      const { output, exit } = find(params);
      return { output: output.text(), truncated: output.truncated, ...(exit && { exitStatus: { ...exit } }) };
    },

    async exit(params, signal) {
      const { done } = find(params);
      const gone = new Promise<never>((_, reject) => {
        signal.addEventListener('abort', () => reject(new Fault('client_closed', 'no longer waited for')), {
          once: true,
        });
      });
      return { ...(await Promise.race([done, gone])) };
    },

    async kill(params) {
      await find(params).kill();
      return {};
    },

    async release(params) {
      const terminal = find(params);
      open.delete(asText(params.terminalId));
      await terminal.kill();
      return {};
    },

    async close() {
      const all = [...open.values()];
      open.clear();
      await Promise.allSettled(all.map((terminal) => terminal.kill()));
    },
  };
}

type Environment = Readonly<Record<string, string>>;

function environmentIn({ env }: JsonObject): Environment {
  return Object.fromEntries(
    listOf(env).flatMap((each) => {
      const [name, value] = [textOf(within(each, 'name')), within(each, 'value')];
      return name && typeof value === 'string' && !/[=\0]/.test(name) ? [[name, value]] : [];
    }),
  );
}

/** Names are enough to decide by, because values are often secrets; but not where they choose what runs. */
function variablesShown(given: Environment): string[] {
  return Object.entries(given).map(([name, value]) => (LOADING_VARIABLES.test(name) ? `${name}=${value}` : name));
}

/** A line without arguments is meant for a shell; everything else is a program. Either way both outputs are one. */
function asCommand({ command, args }: JsonObject): readonly string[] {
  const program = asText(command);
  const rest = listOf(args).map(String);
  if (isShellLine(program, rest)) return ['/bin/sh', '-c', `exec 2>&1\n${program}`];
  return ['/bin/sh', '-c', 'exec "$@" 2>&1', 'sh', program, ...rest];
}

function isShellLine(program: string, args: readonly string[]): boolean {
  return args.length === 0 && /[\s|&;<>()$`"'*?]/.test(program);
}

async function exitOf(child: Child, ended: Promise<void>): Promise<Exit> {
  const { code, signal } = await child.exited;
  // What it wrote last may still be on its way, unless something it left behind holds the pipe.
  await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 100).unref())]);
  return { exitCode: code, signal };
}

function result({ exitCode, signal }: Exit, output: Output): ToolResult {
  const bytes = output.kept();
  const told = { exit_code: exitCode, signal, bytes: output.size, sha256: sha256(bytes) };
  const log = { kind: 'log', name: 'terminal.log', mime_type: 'text/plain', visibility: 'internal', bytes } as const;
  const artifacts = bytes.byteLength > 0 ? { artifacts: [log] } : {};
  if (exitCode === 0) return { status: 'ok', output: told, ...artifacts };
  const error = signal ? `ended by ${signal}` : `exited with ${exitCode}`;
  return { status: 'error', output: told, error, ...artifacts };
}

/** Friendlier to models than an error: a command that says why it did not run. */
function refused(reason: string): Terminal {
  const output = createOutput(DEFAULT_LIMIT, 0);
  output.add(Buffer.from(`not allowed: ${reason}\n`));
  const exit = { exitCode: 126, signal: null };
  return { output, exit, done: Promise.resolve(exit), kill: async () => {} };
}
