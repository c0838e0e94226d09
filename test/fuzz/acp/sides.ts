/** An editor and an agent that answer what they are asked and take down every act that reaches them. */
import { isUtf8 } from 'node:buffer';
import type { PassThrough } from 'node:stream';
import type { JsonObject } from '../../../src/model/schema.ts';
import type { Contact } from '../../support/oracle/oracle.ts';
import { readings } from '../json-readings.ts';
import { CWD } from './frames.ts';

export interface SidesOptions {
  readonly toEditor: PassThrough;
  readonly fromEditor: PassThrough;
  readonly toAgent: PassThrough;
  readonly fromAgent: PassThrough;
  readonly position: () => number;
  readonly seed: number;
}

type Wire = Readonly<Record<string, unknown>> & { readonly params?: JsonObject };

/** What only an agent may send, and what only an editor may. */
const OF_AGENT = /^(fs\/|terminal\/(create|output|wait_for_exit|kill|release)$|session\/(update|request_permission)$)/i;
const OF_EDITOR = /^(initialize$|session\/(new|load|resume|fork|prompt|set_mode|cancel)$)/i;
/** What may reach each side as a notification alone. An editor that offers a server tells the agent of a call by `mcp/message`. */
const NOTIFICATIONS = {
  editor: /^(session\/update|elicitation\/complete|\$\/cancel_request)$/,
  agent: /^(session\/cancel|mcp\/message|\$\/cancel_request)$/,
};
const HARMLESS = /^(host\/capabilities|session\/request_permission|elicitation\/create|\$\/cancel_request)$/;

/** The arguments of a call that no table knows. */
function argumentsOf(params: unknown): JsonObject {
  if (params === undefined) return {};
  return typeof params === 'object' && params !== null && !Array.isArray(params)
    ? (params as JsonObject)
    : ({ params } as JsonObject);
}

export function instrumented(options: SidesOptions) {
  const { toEditor, fromEditor, toAgent, fromAgent, position } = options;
  const contacts: Contact[] = [];
  const violations: string[] = [];
  const terminals = new Set<string>();
  const waiting = new Map<string, () => void>();
  let count = 0;
  let open = 0;

  const say = (to: PassThrough, frame: object) => to.write(`${JSON.stringify({ jsonrpc: '2.0', ...frame })}\n`);
  const contact = (tool: string, args: JsonObject) => contacts.push({ tool, arguments: args, after: position() });

  function act(frame: Wire): void {
    const method = String(frame.method);
    const params = (frame.params ?? {}) as JsonObject & Record<string, never>;
    const { path, content, line = null, limit = null, command, args = [], cwd = CWD, env = [] } = params;
    switch (method) {
      case 'fs/read_text_file':
        contact('fs.read', { path, line, limit });
        break;
      case 'fs/write_text_file':
        contact('fs.write', { path, content });
        break;
      case 'terminal/create': {
        const input = env as unknown as { name: string; value: string }[];
        const shown = input.map(({ name, value }) => (/^(PATH|LD_)/.test(name) ? `${name}=${value}` : name));
        contact('terminal', { command, args, cwd, env: shown });
        break;
      }
      case 'terminal/output':
      case 'terminal/wait_for_exit':
      case 'terminal/kill':
      case 'terminal/release':
        if (!terminals.has(JSON.stringify([params.sessionId, params.terminalId]))) {
          violations.push(`${method} reached the editor for a terminal it did not make: ${JSON.stringify(params)}`);
        }
        break;
      default:
        // Everything no table knows, and what it knows to have an effect, is an act.
        if (frame.id !== undefined && !HARMLESS.test(method)) contact(method, argumentsOf(frame.params));
    }
  }

  function answered(frame: Wire): unknown {
    const { method, params } = frame;
    if (method === 'session/request_permission') {
      count += 1;
      const yes = (count * 7 + options.seed) % 3 !== 0;
      const choices = (params?.options ?? []) as unknown as { optionId?: string; kind?: string }[];
      const option = Array.isArray(choices)
        ? choices.find(({ kind }) => kind === (yes ? 'allow_once' : 'reject_once'))
        : undefined;
      return { outcome: option ? { outcome: 'selected', optionId: option.optionId } : { outcome: 'cancelled' } };
    }
    if (method === 'terminal/create') {
      const terminalId = `x${terminals.size}`;
      terminals.add(JSON.stringify([params?.sessionId, terminalId]));
      return { terminalId };
    }
    if (method === 'terminal/wait_for_exit') return { exitCode: 0, signal: null };
    if (method === 'terminal/output') return { output: 'out', truncated: false };
    if (method === 'fs/read_text_file') return { content: 'content' };
    if (method === 'elicitation/create') return { action: 'decline' };
    return {};
  }

  /** Everything anyone could read in a line, and one answer to what it is. */
  function received(line: Buffer, side: 'editor' | 'agent'): void {
    if (!isUtf8(line)) violations.push(`a line that is not UTF-8 reached the ${side}`);
    const all = readings(line.toString('utf8'));
    if (all.length !== 1)
      violations.push(`a line with ${all.length} readings reached the ${side}: ${String(line).slice(0, 300)}`);
    for (const frame of all as Wire[]) {
      const { method, id } = frame;
      if (typeof method !== 'string') continue;
      if ((side === 'editor' ? OF_EDITOR : OF_AGENT).test(method)) violations.push(`${method} reached the ${side}`);
      if (NOTIFICATIONS[side].test(method) !== (id === undefined) && !method.startsWith('_')) {
        violations.push(
          `${method} reached the ${side} as another kind of frame: ${JSON.stringify(frame).slice(0, 200)}`,
        );
      }
      if (side === 'editor') act(frame);
      else if (id !== undefined && method === '_vendor/ask') contact(method, argumentsOf(frame.params));
    }
    const [frame] = all as Wire[];
    if (!frame) return;
    found(String(frame.method ?? frame.id));
    if (typeof frame.method !== 'string' || frame.id === undefined || frame.method === 'session/prompt') return;
    const result = side === 'editor' ? answered(frame) : { sessionId: 's1', protocolVersion: 1 };
    say(side === 'editor' ? fromEditor : fromAgent, { id: frame.id, result });
  }

  function found(name: string): void {
    waiting.get(name)?.();
    waiting.delete(name);
  }

  function listen(stream: PassThrough, side: 'editor' | 'agent'): void {
    let rest: Buffer = Buffer.alloc(0);
    stream.on('data', (chunk: Buffer) => {
      rest = rest.length > 0 ? Buffer.concat([rest, chunk]) : chunk;
      for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
        received(rest.subarray(0, end), side);
        rest = rest.subarray(end + 1);
      }
    });
  }
  listen(toEditor, 'editor');
  listen(toAgent, 'agent');

  const seen = (name: string, what: () => void) =>
    new Promise<void>((resolve) => {
      waiting.set(name, resolve);
      what();
    });
  const ask = (id: string, method: string, params: object) => seen(id, () => say(fromEditor, { id, method, params }));

  return {
    contacts,
    violations,
    async greet() {
      await ask('g1', 'initialize', { protocolVersion: 1 });
      await ask('g2', 'session/new', { cwd: CWD, mcpServers: [] });
      await seen('session/prompt', () =>
        say(fromEditor, { id: 'g3', method: 'session/prompt', params: { sessionId: 's1', prompt: [] } }),
      );
    },
    /** Everything before this has been looked at, in both directions. */
    async sync() {
      open += 1;
      const name = `_fuzz/sync${open}`;
      await seen(name, () => say(fromAgent, { method: name }));
      await seen(name, () => say(fromEditor, { method: name }));
    },
    /** The turn ends, and with it everything that was still being decided. */
    async settle() {
      await seen('g3', () => say(fromAgent, { id: 'g3', result: { stopReason: 'end_turn' } }));
    },
  };
}
