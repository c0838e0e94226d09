/** The built relay between an agent that writes any bytes and an editor that takes down every act that reaches it. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Json, JsonObject } from '../../../src/model/schema.ts';
import { type Contact, forgetLogs, newestPosition, readEvents } from '../oracle/oracle.ts';
import { startSpeaking } from '../process/stdio-process.ts';
import type { Wire } from '../wire/line-end.ts';

export const PUPPET = fileURLToPath(new URL('../upstreams/acp-puppet.mjs', import.meta.url));
export const RULES = `rules:
  - { id: outside, when: { kind: fs.write, target: "/etc/*" }, then: block, say: not outside }
  - { id: fine, when: { kind: fs.write, target: "*/allowed/*" }, then: allow, say: fine }
  - { id: listing, when: { kind: terminal, target: "ls *" }, then: allow, say: fine }
`;
export const OPTIONS = [
  { optionId: 'y', name: 'Allow', kind: 'allow_once' },
  { optionId: 'n', name: 'Reject', kind: 'reject_once' },
];
const isAct = (method: unknown) => /^(fs|terminal)\//i.test(String(method).trim());

export async function openRig() {
  const dir = await mkdtemp(join(tmpdir(), 'tb-hostile-'));
  const [data, config] = [join(dir, 'data'), join(dir, 'tollbridge.yaml')];
  await mkdir(data);
  await writeFile(config, RULES);
  const cwd = join(data, '..', 'project');
  await mkdir(join(cwd, 'allowed'), { recursive: true });
  const words = ['--config', config, '--data', data, 'acp', '--', process.execPath, PUPPET];
  const { end: editor, child, exited, stderr } = startSpeaking(words);
  const contacts: Contact[] = [];
  let answer: 'allow_once' | 'reject_once' = 'allow_once';
  const record = (tool: string, of: (params: JsonObject) => JsonObject, result: unknown) => (params: JsonObject) => {
    contacts.push({ tool, arguments: of(params), after: newestPosition(data) });
    return result;
  };
  const reads = ({ path, line = null, limit = null }: JsonObject) => ({ path, line, limit }) as JsonObject;
  editor.on('fs/read_text_file', record('fs.read', reads, { content: 'x' }));
  editor.on(
    'fs/write_text_file',
    record('fs.write', ({ path, content }) => ({ path, content }) as JsonObject, {}),
  );
  /** Without one of its own, a command runs in the directory of its session. */
  const runs = ({ sessionId, command, args = [], cwd: where, env = [] }: JsonObject) => {
    const home = sessionId === 's2' ? join(cwd, 'two') : cwd;
    return { command, args, cwd: where ?? home, env } as JsonObject;
  };
  editor.on('terminal/create', record('terminal', runs, { terminalId: 't1' }));
  for (const method of ['terminal/output', 'terminal/wait_for_exit', 'terminal/kill', 'terminal/release']) {
    editor.on(method, () => ({ output: '', truncated: false, exitCode: 0 }));
  }
  const questions: Wire[] = [];
  editor.on('session/request_permission', (_, frame) => {
    questions.push(frame);
    const kind = answer;
    return { outcome: { outcome: 'selected', optionId: optionOf(frame, kind) } };
  });
  await editor.ask('initialize', { protocolVersion: 1 });
  await editor.ask('session/new', { cwd, mcpServers: [] });
  await editor.ask('session/new', { cwd: join(cwd, 'two'), mcpServers: [] });
  const prompted = editor.next(
    ({ method, params }) => method === '_test/heard' && String(params?.line).includes('prompt'),
  );
  void editor.ask('session/prompt', { sessionId: 's1', prompt: [{ type: 'text', text: 'go' }] });
  await prompted;
  let said = 0;
  const from = { received: 0, frames: 0, questions: 0, reasons: 0 };

  /** The agent writes these bytes; resolves when whatever came of them, short of people, has reached the editor. */
  async function say(bytes: string | Uint8Array): Promise<void> {
    const n = said++;
    const done = editor.next(({ method, params }) => method === '_test/said' && params?.n === n);
    editor.notify('_test/say', { n, bytes: Buffer.from(bytes).toString('base64') });
    await done;
  }

  const everReceived = () =>
    editor.frames.flatMap(({ method, params }) =>
      method === '_test/heard' ? [JSON.parse(String(params?.line)) as Wire] : [],
    );
  /** Since the last mark: what the agent got. */
  const received = () => everReceived().slice(from.received);
  const reasons = async () =>
    (await readEvents(data, ['vendor.acp.frame_refused'])).map(({ payload }) => String(payload.reason));
  async function reply(id: Json, at: number): Promise<Wire> {
    const like = (frame: Wire) => frame.method === undefined && frame.id === id;
    const before = received().slice(at).find(like);
    if (before) return before;
    const found = await editor.next(
      ({ method, params }) => method === '_test/heard' && like(JSON.parse(String(params?.line))),
    );
    return JSON.parse(String(found.params?.line)) as Wire;
  }

  return {
    data,
    cwd,
    editor,
    contacts,
    questions: () => questions.slice(from.questions),
    say,
    stderr,
    received,
    answers(kind: typeof answer) {
      answer = kind;
    },
    /** What came before is another case's. */
    async mark() {
      from.received = everReceived().length;
      from.frames = editor.frames.length;
      from.questions = questions.length;
      from.reasons = (await reasons()).length;
    },
    async flood(bytes: number): Promise<void> {
      const n = said++;
      const done = editor.next(({ method, params }) => method === '_test/said' && params?.n === n);
      editor.notify('_test/flood', { n, bytes });
      await done;
    },
    alive: () => child.exitCode === null,
    /** The agent asks, and has this answer. */
    async ask(method: string, params: object, id: Json = `r${said}`): Promise<Wire> {
      const at = received().length;
      await say(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
      return await reply(id, at);
    },
    acts: () =>
      editor.frames
        .slice(from.frames)
        .filter(({ method }) => isAct(method))
        .map(({ method }) => method),
    reasons: async () => (await reasons()).slice(from.reasons),
    async close() {
      editor.close();
      await exited;
      forgetLogs();
      await rm(dir, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}
export type Rig = Awaited<ReturnType<typeof openRig>>;

function optionOf(frame: Wire, kind: string): string {
  const options = frame.params?.options as unknown as { kind: string; optionId: string }[];
  return options.find((option) => option.kind === kind)?.optionId ?? '';
}

export const line = (frame: object) => `${JSON.stringify({ jsonrpc: '2.0', ...frame })}\n`;
