/** An editor: over the standard streams of `tollbridge acp-agent`, or over a WebSocket of the gateway. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { WebSocket } from 'ws';
import { eventually } from '../../support/eventually.ts';
import type { Setup } from '../backends.ts';
import { PROCESSES, PROGRAM } from '../gateway.ts';
import { type Gateway, type Loose, overAt } from '../gateway-client.ts';
import { LAST_WORDS } from '../stories.ts';
import { createInbox, type DoorClient, type Work } from './door.ts';

interface Line {
  /** Gets what comes from now on. */
  hear: (text: string) => void;
  send(text: string): void;
  /** Hangs up; resolves when the other side has noticed. */
  close(): Promise<void>;
}
type Connect = (near: Gateway) => Promise<Line>;
const unheard = (): void => {};

const STATES: Readonly<Record<string, string>> = { end_turn: 'COMPLETED', cancelled: 'CANCELED', refusal: 'FAILED' };
const CAPABILITIES = { elicitation: { form: {} }, _meta: { tollbridge: {} } };

const overStdio: Connect = async ({ config, data, dir, env, withoutDemoTools }) => {
  const command = withoutDemoTools
    ? [join(PROCESSES, 'tools-gateway.mjs'), config, data, 'acp']
    : [PROGRAM, '--config', config, '--data', data, 'acp-agent', '--journal', join(dir, 'journal')];
  const child = spawn(process.execPath, command, {
    cwd: dir,
    stdio: ['pipe', 'pipe', 'ignore'],
    env: { ...process.env, ...env },
  });
  child.stdin.on('error', () => {}); // one that has ended reads nothing
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const line: Line = {
    hear: unheard,
    send: (text) => void child.stdin.write(`${text}\n`),
    async close() {
      child.stdin.end();
      const late = setTimeout(() => child.kill('SIGKILL'), 10_000);
      await ended;
      clearTimeout(late);
    },
  };
  createInterface({ input: child.stdout }).on('line', (text) => line.hear(text));
  return line;
};

const overSocket: Connect = async ({ url, token }) => {
  const socket = new WebSocket(`${url.replace(/^http/, 'ws')}/acp`, { headers: { authorization: `Bearer ${token}` } });
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  const line: Line = {
    hear: unheard,
    send: (text) => socket.send(text),
    close: () =>
      new Promise((resolve) => {
        socket.once('close', () => resolve());
        socket.terminate();
      }),
  };
  socket.on('message', (data) => line.hear(String(data)));
  return line;
};

/** A server that is started with the process is met by a process that was just started. */
const STARTS_A_SERVER = /\bslow_mail\b/;

/** `keeps`: one line serves work after work, in a session each, as an editor's agent does, until it breaks in the middle of one. */
function editor(title: string, connect: Connect, keeps = false): DoorClient {
  const kept = new Map<Gateway, Line>();
  let count = 0;
  return {
    title,
    async leave(near) {
      await kept.get(near)?.close();
      kept.delete(near);
    },
    async give({ near }: Setup, says): Promise<Work> {
      const inbox = createInbox<Loose>();
      const keep = keeps && !STARTS_A_SERVER.test(says);
      let line: Line;
      let over = false;
      const send = (frame: object) => line.send(JSON.stringify({ jsonrpc: '2.0', ...frame }));
      async function call(method: string, params: object): Promise<Loose> {
        count += 1;
        const id = count;
        send({ id, method, params });
        return await inbox.find((frame) => frame.id === id && frame.method === undefined, `an answer to ${method}`);
      }
      const hear = (text: string) => inbox.add(JSON.parse(text));
      async function open(): Promise<void> {
        line = Object.assign(await connect(near), { hear });
        const clientInfo = { name: 'editor', version: '1' };
        await call('initialize', { protocolVersion: 1, clientCapabilities: CAPABILITIES, clientInfo });
      }
      const isUpdate = (kind: string) => (frame: Loose) =>
        isOurs(frame) && frame.method === 'session/update' && frame.params.update.sessionUpdate === kind;
      const chunks = () =>
        inbox.frames.filter(isUpdate('agent_message_chunk')).map(({ params }) => params.update.content);
      const isQuestion = (frame: Loose) => isOurs(frame) && frame.method !== undefined && frame.id !== undefined;

      const known = keep ? kept.get(near) : undefined;
      if (known) line = Object.assign(known, { hear });
      else await open();
      const { result: created, error } = await call('session/new', { cwd: near.dir, mcpServers: [] });
      if (!created) throw new Error(`no session: ${JSON.stringify(error)}`);
      const { sessionId } = created;
      // A line that was kept may still tell of the work before.
      const isOurs = ({ params }: Loose) => params?.sessionId === sessionId;
      const prompted = { sessionId, prompt: [{ type: 'text', text: says }] };
      let turn = call('session/prompt', prompted);
      turn.catch(() => {});
      const taskOf = () =>
        eventually<string>(async () => (await near.list(`/v1/sessions/${sessionId}/tasks`))[0]?.id, 'the task');

      return {
        task: taskOf,
        asked: async () => void (await inbox.find(isQuestion, 'a question')),
        async answer({ approved, value, reason }) {
          const { id, params } = await inbox.find(isQuestion, 'a question');
          if (value !== undefined) return send({ id, result: { action: 'accept', content: { answer: value } } });
          const wanted = approved ? 'allow_once' : 'reject_once';
          const { optionId } = params.options.find(({ kind }: Loose) => kind === wanted);
          const _meta = { tollbridge: { reason } };
          send({ id, result: { outcome: { outcome: 'selected', optionId }, _meta } });
        },
        async cancel(reason) {
          send({ method: 'session/cancel', params: { sessionId, _meta: { tollbridge: { reason } } } });
        },
        async drop() {
          await inbox.find(isUpdate('agent_message_chunk'), 'words');
          if (kept.get(near) === line) kept.delete(near);
          await line.close();
        },
        async readOn() {
          const last = inbox.frames.findLast(({ params }) => params?._meta?.tollbridge?.eventId);
          const after = last?.params._meta.tollbridge.eventId;
          await open();
          turn = call('session/resume', { sessionId, cwd: near.dir, _meta: { tollbridge: { after } } });
          await turn;
        },
        async file(name) {
          const found = chunks().find(
            ({ type, _meta }: Loose) => type === 'resource' && _meta?.tollbridge?.name === name,
          );
          return found?.resource.text ?? '';
        },
        async ended() {
          const { result, error } = await turn;
          over = true;
          const text = () =>
            chunks()
              // A text that an agent put into its message with an address; files of the gateway are no words.
              .map(
                ({ text, resource, _meta }: Loose) =>
                  text ?? (_meta?.tollbridge?.artifactId ? '' : resource?.text) ?? '',
              )
              .join('');
          if (result && !result.stopReason) {
            // After a resume there is no turn to wait for: the session says when its work is over.
            const status = await overAt(near, await taskOf());
            await eventually(() => text().endsWith(LAST_WORDS), 'the rest of the words').catch((cause: unknown) => {
              throw new Error(`${cause}; the client had ${JSON.stringify(text())}`);
            });
            return { state: status, text: text() };
          }
          return { state: error ? 'FAILED' : (STATES[result.stopReason] ?? result.stopReason), text: text() };
        },
        async close() {
          if (keep && over) return void kept.set(near, line);
          if (kept.get(near) === line) kept.delete(near);
          await line.close();
        },
      };
    },
  };
}

export const stdio = editor('ACP, stdio', overStdio, true);
export const socket = editor('ACP, WebSocket', overSocket);
