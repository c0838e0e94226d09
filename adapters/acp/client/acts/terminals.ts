/**
 * Runs commands for an agent through the gate, so these acts are held. An act lasts as long as its command; the output is
 * stored as a log afterwards. The end of a task ends its terminals.
 */

import { isAbsolute } from 'node:path';
import { LOADING_VARIABLES } from '../../../../mappings/acp-acts.ts';
import { asText, Fault, type JsonObject, type Sink, type ToolResult } from '../../../../src/index.ts';
import { type Child, startChild } from '../../../../src/transport/process/child.ts';
import { minimalEnvironment } from '../../../../src/transport/process/environment.ts';
import { listOf, numberOf, textOf, within } from '../../shapes.ts';
import type { UpdateReader } from '../read-updates.ts';
import { createOutput, type Output } from './command-output.ts';
import { sha256 } from './effects.ts';

interface TerminalsDeps {
  readonly sink: Sink;
  readonly reader: Pick<UpdateReader, 'servedBy'>;
  readonly taskId: string;
  readonly cwd: string;
  /** The agent's name for itself. */
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
  /** Ends every running command. */
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
  /** `why` is recorded, unless the command had already ended. */
  kill(why: string): Promise<void>;
}

const DEFAULT_LIMIT = 1024 * 1024;
/** The most output of a command that is stored as its log. */
const KEPT = 8 * 1024 * 1024;
const MOST = 64;

export function createTerminals(deps: TerminalsDeps): Terminals {
  const { sink, reader, taskId, cwd, blocked, graceMs } = deps;
  const open = new Map<string, Terminal>();
  /** Commands whose end is not yet recorded. */
  const acts = new Set<Promise<unknown>>();
  let count = 0;

  function find({ terminalId }: JsonObject): Terminal {
    const found = open.get(asText(terminalId));
    if (!found) throw new Fault('not_found', `there is no terminal ${asText(terminalId).slice(0, 80)}`);
    return found;
  }

  async function run(
    args: JsonObject,
    variables: Environment,
    output: Output,
    signal: AbortSignal,
    started: (t: Terminal) => void,
  ) {
    const child = await startChild({
      command: asCommand(args),
      cwd: textOf(args.cwd) ?? cwd,
      env: { ...minimalEnvironment(deps.inherit), ...variables },
    });
    child.stdin.end();
    child.stdout.on('data', (chunk: Buffer) => output.add(chunk));
    const ended = new Promise<void>((resolve) => child.stdout.once('close', () => resolve()));
    let killed: string | undefined;
    const terminal: Terminal = {
      output,
      exit: undefined,
      done: exitOf(child, ended),
      kill(why) {
        if (!terminal.exit) killed ??= why;
        return child.close(graceMs);
      },
    };
    const stop = () => void child.close(graceMs).catch(() => {});
    signal.addEventListener('abort', stop, { once: true });
    started(terminal);
    try {
      terminal.exit = await terminal.done;
    } finally {
      signal.removeEventListener('abort', stop);
      // Also processes it left in the background.
      await child.close(graceMs);
    }
    return result(terminal.exit, output, killed);
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
      const variables = environmentIn(params);
      const args = listOf(params.args).map(String);
      const output = createOutput(numberOf(params.outputByteLimit) ?? DEFAULT_LIMIT, KEPT);
      const served = reader.servedBy({});
      let started: (terminal: Terminal) => void = () => {};
      const running = new Promise<Terminal>((resolve) => {
        started = resolve;
      });
      const action = sink.act(
        {
          kind: 'terminal',
          tool: 'terminal',
          tool_call_id: id,
          target: [command, ...args].join(' ').slice(0, 2_000),
          arguments: { command, args, cwd: where ?? cwd, env: variablesShown(variables) },
          effect: 'execute',
          claims: { agent: deps.agent },
          cwd,
          attributes: {
            shell: isShellLine(command, args),
            ...(served && { linked_to: served.id, linked_by: served.by }),
          },
        },
        (allowed, signal) => run(allowed, variables, output, signal, started),
        withdrawn,
      );
      acts.add(action);
      action.catch(() => {}).finally(() => acts.delete(action)); // handled below, or reported by the terminal itself
      const first = await Promise.race([running, action]);
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
      await find(params).kill('killed by the agent');
      return {};
    },

    async release(params) {
      const terminal = find(params);
      open.delete(asText(params.terminalId));
      await terminal.kill('released by the agent while it was running');
      return {};
    },

    async close() {
      const all = [...open.values()];
      open.clear();
      await Promise.allSettled(all.map((terminal) => terminal.kill('killed at the end of its turn')));
      await Promise.allSettled(acts);
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

/**
 * Variable names are enough for a decision, because values are often secrets; values of variables that choose what runs are
 * included.
 */
function variablesShown(variables: Environment): string[] {
  return Object.entries(variables).map(([name, value]) => (LOADING_VARIABLES.test(name) ? `${name}=${value}` : name));
}

/** A command line without arguments goes to a shell; otherwise it is a program. Both outputs are merged. */
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
  // The last output may still be in the pipe, unless a background process holds the pipe open.
  await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 100).unref())]);
  return { exitCode: code, signal };
}

function result({ exitCode, signal }: Exit, output: Output, killed?: string): ToolResult {
  const bytes = output.kept();
  const summary = { exit_code: exitCode, signal, bytes: output.size, sha256: sha256(bytes) };
  const log = { kind: 'log', name: 'terminal.log', mime_type: 'text/plain', visibility: 'internal', bytes } as const;
  const artifacts = bytes.byteLength > 0 ? { artifacts: [log] } : {};
  if (exitCode === 0) return { status: 'ok', output: summary, ...artifacts };
  const error = signal ? `ended by ${signal}` : `exited with ${exitCode}`;
  if (killed) return { status: 'error', output: summary, error: `${killed}: ${error}`, code: 'canceled', ...artifacts };
  return { status: 'error', output: summary, error, ...artifacts };
}

/** Models handle this better than an error: a terminal whose output says why the command did not run. */
function refused(reason: string): Terminal {
  const output = createOutput(DEFAULT_LIMIT, 0);
  output.add(Buffer.from(`not allowed: ${reason}\n`));
  const exit = { exitCode: 126, signal: null };
  return { output, exit, done: Promise.resolve(exit), kill: async () => {} };
}
