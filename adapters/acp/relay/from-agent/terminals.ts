/**
 * Terminals the editor runs for the agent. Creating one is the act, which ends when the exit is seen. A denied terminal looks
 * to the agent like a command that could not be run, with the reason as its output: models handle that better than an error.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { LOADING_VARIABLES } from '../../../../mappings/acp-acts.ts';
import type { Json, JsonObject, ToolResult } from '../../../../src/index.ts';
import { asText } from '../../../../src/index.ts';
import { sha256 } from '../../client/acts/effects.ts';
import { objectOf, textOf, within } from '../../shapes.ts';
import { encodeError, encodeResult, idOf, paramsOf, type Request, type Response } from '../frames/frame.ts';
import { withMember } from '../frames/members.ts';
import type { Wires } from '../frames/pending.ts';
import { refusedError } from '../frames/refusals.ts';
import type { Turn } from '../from-editor/turns.ts';
import { commandIn, invalid } from './act-params.ts';
import type { Approvals } from './approved-acts.ts';
import { failureOf, type HeldActs } from './held-acts.ts';

export interface RelayedTerminals {
  create(request: Request, turn: Turn, withdrawn: AbortSignal): Promise<void>;
  /** Output, wait, kill, release: settles when the agent has its response. Only for a terminal that was allowed here. */
  use(request: Request): Promise<void>;
  /** The turn is over: the end of commands still running was not seen. Settles when that is recorded. */
  ended(turn: Turn): Promise<unknown>;
}

interface TerminalsDeps {
  readonly wires: Wires;
  readonly held: HeldActs;
  readonly approvals: Approvals;
  readonly blocked: 'exit126' | 'error';
}

interface Running {
  readonly turn: Turn;
  output: string;
  /** The agent killed it. */
  killed: boolean;
  readonly over: (result: ToolResult) => void;
}

/** The exit code of shells for a command that may not be run. */
const MAY_NOT_RUN = 126;
/** An act that waits for an approval is not waited for. */
const RECORD_MS = 1_000;

export function createTerminals({ wires, held, approvals, blocked }: TerminalsDeps): RelayedTerminals {
  const running = new Map<string, Running>();
  /** Acts of a turn whose end is not recorded. */
  const recording = new WeakMap<Turn, Set<Promise<void>>>();
  /** Terminals the editor created for an allowed act, until they are released. */
  const made = new Set<string>();
  /** Denied terminals, by id, with the reason. */
  const refused = new Map<string, string>();
  const key = (params: JsonObject) => JSON.stringify([params.sessionId ?? null, params.terminalId ?? null]);

  function finish(id: string, exit: JsonObject | undefined, why?: string): void {
    const terminal = running.get(id);
    if (!terminal) return;
    running.delete(id);
    const { output, killed } = terminal;
    const { exitCode = null, signal = null } = exit ?? {};
    const seen = { exit_code: exitCode, signal, output_sha256: output ? sha256(output) : null } as JsonObject;
    const file = { kind: 'log', name: 'terminal.log', mime_type: 'text/plain', visibility: 'internal' } as const;
    const artifacts = output ? [{ ...file, bytes: Buffer.from(output) }] : [];
    if (exitCode === 0) terminal.over({ status: 'ok', output: seen, artifacts });
    else {
      const how = why ?? (signal ? `ended by ${asText(signal)}` : `exited with ${asText(exitCode)}`);
      const error = killed ? `killed by the agent: ${how}` : how;
      const code = killed ? 'canceled' : why ? 'outcome_unknown' : undefined;
      terminal.over({ status: 'error', output: seen, artifacts, error, ...(code && { code }) });
    }
  }

  function learn(id: string, method: string, { message }: Response): void {
    const result = objectOf(message.result);
    const terminal = running.get(id);
    if (!result || !terminal) return;
    if (method === 'terminal/output') {
      terminal.output = textOf(result.output) ?? terminal.output;
      const exit = objectOf(result.exitStatus);
      if (exit) finish(id, exit);
    } else if (method === 'terminal/wait_for_exit') finish(id, result);
    else if (method === 'terminal/kill') terminal.killed = true;
    else if (method === 'terminal/release') finish(id, undefined, 'released before it was seen to end');
  }

  return {
    async create(request, turn, withdrawn) {
      const params = paramsOf(request);
      const { command, args, cwd = turn.sessionKey.cwd, env } = commandIn(params);
      const commandLine = [command, ...args].join(' ');
      // Values of variables are often secrets; names are enough for a decision, unless the variable chooses what runs.
      const variables = env.map(({ name, value }) => (LOADING_VARIABLES.test(name) ? `${name}=${value}` : name));
      let response: Response | undefined;
      const action = held.act(request, turn, withdrawn, {
        action: {
          kind: 'terminal',
          tool: 'terminal',
          target: commandLine,
          effect: 'execute',
          arguments: { command, args: [...args], cwd, env: variables },
          attributes: { protocol: 'acp' },
        },
        title: `Run ${commandLine}`,
        kind: 'execute',
        covered: approvals.covering(turn)({ operation: 'execute', command, args, cwd, variables: env.length }),
        rewritten(line, changed) {
          const members: Readonly<Record<string, Json | undefined>> = { command: changed.command, args: changed.args };
          let next = line;
          for (const [name, value] of Object.entries(members)) {
            if (value !== undefined) next = withMember(next, ['params', name], value);
          }
          if (changed.cwd !== cwd) next = withMember(next, ['params', 'cwd'], changed.cwd);
          return next;
        },
        async run(line) {
          response = await wires.askEditor(request, line);
          const failed = failureOf(response);
          const terminalId = textOf(within(response.message, 'result', 'terminalId'));
          if (failed || !terminalId) return failed ?? { status: 'error', output: null, error: 'no terminal was made' };
          const id = key({ sessionId: params.sessionId, terminalId } as JsonObject);
          made.add(id);
          const over = new Promise<ToolResult>((resolve) => {
            running.set(id, { turn, output: '', killed: false, over: resolve });
          });
          // The decision is recorded; the agent gets its terminal before the command ends.
          wires.agent.send(response.line);
          const result = await over;
          response = undefined;
          return result;
        },
        answer: () => response?.line,
        refused(reason) {
          if (blocked === 'error') return encodeError(idOf(request), refusedError(reason));
          const terminalId = `gw-refused-${refused.size + 1}`;
          refused.set(key({ sessionId: params.sessionId, terminalId } as JsonObject), reason);
          return encodeResult(idOf(request), { terminalId });
        },
      });
      const acts = recording.get(turn) ?? new Set();
      recording.set(turn, acts.add(action));
      await action.finally(() => acts.delete(action));
    },

    use(request) {
      const id = key(paramsOf(request));
      const reason = refused.get(id);
      if (reason !== undefined) {
        const exit = { exitCode: MAY_NOT_RUN, signal: null };
        const output = { output: `${reason}\n`, truncated: false, exitStatus: exit };
        const results: Record<string, object> = { 'terminal/output': output, 'terminal/wait_for_exit': exit };
        wires.agent.send(
          encodeResult(
            idOf(request),
            (Object.hasOwn(results, request.method) ? results[request.method] : undefined) ?? {},
          ),
        );
        return Promise.resolve();
      }
      if (!made.has(id)) throw invalid('terminalId', 'names no terminal that was created in this session');
      return wires.askEditor(request).then(
        (response) => {
          learn(id, request.method, response);
          if (request.method === 'terminal/release' && !failureOf(response)) made.delete(id);
          wires.agent.send(response.line);
        },
        () => finish(id, undefined, 'the editor has gone'),
      );
    },

    ended(turn) {
      for (const [id, terminal] of [...running]) {
        if (terminal.turn === turn) finish(id, undefined, 'it was still running when its turn ended');
      }
      return Promise.race([Promise.allSettled(recording.get(turn) ?? []), pause(RECORD_MS, undefined, { ref: false })]);
    },
  };
}

export function isTerminalUse(method: string): boolean {
  return /^terminal\/(output|wait_for_exit|kill|release)$/.test(method);
}
