/** An editor of the Agent Client Protocol that remembers every frame, answers as configured and can wait for one. */

import { PassThrough } from 'node:stream';
import { onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { type AcpConfig, settingsOf } from '../../../adapters/acp/config.ts';
import { serveStreams } from '../../../adapters/acp/server/stdio.ts';
import { openApiKeys } from '../../../src/auth/api-keys.ts';
import { PRESETS, type Preset } from '../../../src/auth/presets.ts';
import { systemClock } from '../../../src/core/clock.ts';
import type { Actor } from '../../../src/model/actions.ts';
import type { Gateway } from '../../../src/runtime/gateway.ts';
import { readLines } from '../../../src/transport/ndjson/ndjson.ts';
import { ana } from '../gateway/actors.ts';
import { openTestGateway, type TestGateway, type TestGatewayOptions } from '../gateway/test-gateway.ts';

// biome-ignore lint/suspicious/noExplicitAny: frames are looked into freely
export type Frame = any;

export interface Editor {
  readonly frames: Frame[];
  readonly lines: string[];
  /** The result; an error is thrown as the object it came as. */
  call(method: string, params?: object): Promise<Frame>;
  /** The error of a call that must fail. */
  refused(method: string, params?: object): Promise<Frame>;
  tell(method: string, params: object): void;
  write(line: string): void;
  /** The first frame from here on that satisfies the wish; earlier ones are not looked at again. */
  next(wish: (frame: Frame) => boolean): Promise<Frame>;
  /** Answers a request of the agent. */
  answer(id: unknown, result: object): void;
  /** Updates of a session so far, or those of one kind. */
  updates(kind?: string): Frame[];
  /** A new session in a directory. */
  session(cwd?: string): Promise<string>;
  prompt(sessionId: string, text: string): Promise<Frame>;
  /** Hangs up; resolves when the door has noticed. */
  close(): Promise<void>;
}

export interface Line {
  send(text: string): void;
  onText(hear: (text: string) => void): void;
  close(): Promise<void>;
}

const CAPABILITIES = { elicitation: { form: {} }, session: { notices: {}, compaction: {} } };

/** Speaks over any line and has said hello. */
export async function speak(line: Line, clientCapabilities: object = CAPABILITIES): Promise<Editor> {
  const frames: Frame[] = [];
  const lines: string[] = [];
  const waiting = new Set<() => void>();
  let looked = 0;
  let ids = 0;
  line.onText((text) => {
    lines.push(text);
    frames.push(JSON.parse(text));
    for (const go of [...waiting]) go();
  });
  const arrival = () =>
    new Promise<void>((resolve) => {
      const go = () => {
        waiting.delete(go);
        resolve();
      };
      waiting.add(go);
    });
  async function find(from: number, wish: (frame: Frame) => boolean): Promise<number> {
    for (let at = from; ; at += 1) {
      while (at >= frames.length) await arrival();
      if (wish(frames[at])) return at;
    }
  }
  const write = (text: string) => line.send(text);
  async function exchange(method: string, params: object): Promise<Frame> {
    const id = ids++;
    const from = frames.length;
    write(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    return frames[await find(from, (frame) => frame.id === id && frame.method === undefined)];
  }
  const editor: Editor = {
    frames,
    lines,
    async call(method, params = {}) {
      const { result, error } = await exchange(method, params);
      if (error) throw Object.assign(new Error(error.message), error);
      return result;
    },
    async refused(method, params = {}) {
      const { result, error } = await exchange(method, params);
      if (!error) throw new Error(`${method} was answered with ${JSON.stringify(result)}`);
      return error;
    },
    tell: (method, params) => write(JSON.stringify({ jsonrpc: '2.0', method, params })),
    write,
    async next(wish) {
      const at = await find(looked, wish);
      looked = at + 1;
      return frames[at];
    },
    answer: (id, result) => write(JSON.stringify({ jsonrpc: '2.0', id, result })),
    updates: (kind) =>
      frames
        .filter(({ method }) => method === 'session/update')
        .map(({ params }) => params.update)
        .filter(({ sessionUpdate }) => kind === undefined || sessionUpdate === kind),
    session: async (cwd = '/notes') => (await editor.call('session/new', { cwd, mcpServers: [] })).sessionId,
    prompt: (sessionId, text) => editor.call('session/prompt', { sessionId, prompt: [{ type: 'text', text }] }),
    close: () => line.close(),
  };
  const clientInfo = { name: 'editor', version: '1' };
  await editor.call('initialize', { protocolVersion: 1, clientCapabilities, clientInfo });
  return editor;
}

export interface EditorOptions {
  readonly actor?: Actor;
  readonly config?: AcpConfig;
  readonly capabilities?: object;
}

/** An editor at the end of two streams. */
export async function openEditor(at: TestGateway, options: EditorOptions = {}): Promise<Editor> {
  const { actor = ana, config = {}, capabilities } = options;
  const [input, output] = [new PassThrough(), new PassThrough()];
  const log = { info() {}, warn() {}, error() {} };
  const served = serveStreams(settingsOf(config), { log }, at.bridge, { actor, input, output });
  let hear: (text: string) => void = () => {};
  (async () => {
    for await (const text of readLines(output, { limit: 64 * 1024 * 1024 })) hear(text);
  })();
  const close = async () => {
    input.end();
    await served;
  };
  onTestFinished(close);
  return await speak(
    {
      send: (text) => void input.write(`${text}\n`),
      onText: (ear) => {
        hear = ear;
      },
      close,
    },
    capabilities,
  );
}

export async function openEditorGateway(runtime: TestGatewayOptions = {}, options: EditorOptions = {}) {
  const at = await openTestGateway(runtime);
  return { at, editor: await openEditor(at, options) };
}

/** An editor at the door of a served gateway. */
/** A person's key for the editor's door: the token that is printed is a program's, and is shown no questions. */
export async function editorKey(dataDir: string): Promise<string> {
  const { kind, scopes, doors } = PRESETS.get('editor') as Preset;
  const actor = { id: 'eda', kind, scopes: [...scopes], doors: [...(doors ?? [])] };
  return (await openApiKeys(dataDir, systemClock).create({ name: 'editor', actor })).key;
}

export async function speakTo({ url, token }: Pick<Gateway, 'url' | 'token'>, capabilities?: object): Promise<Editor> {
  const headers = { authorization: `Bearer ${token}` };
  const socket = new WebSocket(`${url.replace(/^http/, 'ws')}/acp`, { headers });
  onTestFinished(() => socket.terminate());
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  return await speak(
    {
      send: (text) => socket.send(text),
      onText: (hear) => void socket.on('message', (data) => hear(String(data))),
      close: async () => socket.close(),
    },
    capabilities,
  );
}
