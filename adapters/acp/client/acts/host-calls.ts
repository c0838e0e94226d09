/**
 * Harn's calls to its host: running a command, and the shells for that. A command is an act like one in a terminal; a question
 * about the shells is decided by its own effect. Other calls are not served.
 */
import { access } from 'node:fs/promises';
import { basename } from 'node:path';
import { HOST_OPERATIONS } from '../../../../mappings/acp-harn.ts';
import { Fault, type JsonObject, type Sink } from '../../../../src/index.ts';
import { RpcError } from '../../../../src/transport/json-rpc/messages.ts';
import { hostCommand } from '../../harn.ts';
import { compact, lookup, numberOf, objectOf, textOf } from '../../shapes.ts';
import { unlessRefused } from './files.ts';
import type { Terminals } from './terminals.ts';

export interface HostCallsDeps {
  readonly sink: Sink;
  readonly terminals: Terminals;
  readonly cwd: string;
  readonly taskId: string;
  /** The agent's name for itself. */
  readonly agent: string;
}

const USUAL_SHELL = '/bin/sh';
const SHELLS = [USUAL_SHELL, '/bin/bash', '/usr/bin/bash', '/bin/zsh', '/usr/bin/zsh', '/usr/bin/fish'];

export function createHostCalls({ sink, terminals, cwd, taskId, agent }: HostCallsDeps) {
  let shell = USUAL_SHELL;
  let count = 0;

  async function shells(): Promise<readonly string[]> {
    const there = await Promise.all(
      SHELLS.map((path) =>
        access(path).then(
          () => [path],
          () => [],
        ),
      ),
    );
    return there.flat();
  }

  const shown = (path: string) => ({ id: basename(path), path });

  async function exec(args: JsonObject, signal: AbortSignal): Promise<JsonObject> {
    // A line for the usual shell is one for a terminal too, where rules read it as it is.
    const line = shell === USUAL_SHELL && args.args === undefined ? textOf(args.command) : undefined;
    const [command = '', ...words] = line ? [line] : hostCommand(args, shell);
    if (!command) throw new Fault('invalid_request', 'process.exec needs argv, or a command', { param: '/args' });
    const env = Object.entries(objectOf(args.env) ?? {}).map(([name, value]) => ({ name, value }));
    const made = await terminals.create(compact({ command, args: words, cwd: textOf(args.cwd), env }), signal);
    const exit = await terminals.exit(made, signal);
    const { output, truncated } = terminals.output(made);
    await terminals.release(made);
    const exit_code = numberOf(exit.exitCode) ?? null;
    return {
      exit_code,
      signal: exit.signal ?? null,
      stdout: output ?? '',
      stderr: '',
      truncated,
      success: exit_code === 0,
    };
  }

  const ABOUT_SHELLS: Readonly<Record<string, (args: JsonObject) => Promise<JsonObject>>> = {
    'process.list_shells': async () => ({ shells: (await shells()).map(shown), default: shown(shell) }),
    'process.get_default_shell': async () => ({ shell: shown(shell) }),
    async 'process.set_default_shell'(args) {
      const wanted = textOf(args.shell) ?? textOf(args.path) ?? textOf(args.id) ?? '';
      const found = (await shells()).find((path) => path === wanted || basename(path) === wanted);
      if (!found) throw new Fault('invalid_request', 'there is no such shell here', { param: '/args' });
      shell = found;
      return { shell: shown(shell) };
    },
    async 'process.shell_invocation'(args) {
      const [program = '', ...words] = hostCommand({ command: args.command ?? '' }, shell);
      return { program, args: words, argv: [program, ...words] };
    },
  };

  return async function call(params: JsonObject, signal: AbortSignal): Promise<JsonObject> {
    const name = textOf(params.name) ?? '';
    const args = objectOf(params.args) ?? {};
    if (name === 'process.exec') return await exec(args, signal);
    const serve = lookup(ABOUT_SHELLS, name);
    const effect = lookup(HOST_OPERATIONS, name);
    if (!serve || !effect) throw new RpcError({ code: -32601, message: `there is no host call ${name.slice(0, 100)}` });
    count += 1;
    const action = {
      kind: 'extension' as const,
      tool: name,
      tool_call_id: `${taskId}.host${count}`,
      effect,
      arguments: args,
      attributes: { protocol: 'acp' },
      claims: { agent },
      cwd,
    };
    let output: JsonObject = {};
    const done = await sink.act(
      action,
      async (allowed) => {
        output = await serve(allowed);
        return { status: 'ok', output };
      },
      signal,
    );
    unlessRefused(done);
    return output;
  };
}
