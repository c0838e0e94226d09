/**
 * An editor and an agent with a relay between them, all in one process: real gateway, real log, real rules. A test plays
 * the editor and the agent by writing and reading lines; both keep what they received, byte for byte.
 */
import { PassThrough } from 'node:stream';
import { onTestFinished } from 'vitest';
import { createWires } from '../../../adapters/acp/relay/frames/pending.ts';
import { createTurns } from '../../../adapters/acp/relay/from-editor/turns.ts';
import { createWrappedAgent } from '../../../adapters/acp/relay/from-editor/wrapped-agent.ts';
import { openLink } from '../../../adapters/acp/relay/link.ts';
import { createRelay, type LinkRelay } from '../../../adapters/acp/relay/relay.ts';
import { PLAIN_SETTINGS, type RelaySettings } from '../../../adapters/acp/relay/settings.ts';
import type { Actor } from '../../../src/model/actions.ts';
import type { Task } from '../../../src/model/resources.ts';
import type { JsonObject } from '../../../src/model/schema.ts';
import type { Row } from '../../../src/ports/index.ts';
import { sequentialIds } from '../gateway/clock.ts';
import { openTestGateway, type TestGateway, type TestGatewayOptions } from '../gateway/test-gateway.ts';
import { createEnd, type End, type Handler, type Wire } from '../wire/line-end.ts';

export interface Stage {
  readonly editor: End;
  readonly agent: End;
  readonly relay: LinkRelay;
  readonly home: TestGateway;
  /** The one task there is, or the newest. */
  task(): Promise<Task & Row>;
  tasks(): Promise<readonly (Task & Row)[]>;
  /** Initialized, and with a session called `s1`. */
  greeted(more?: { init?: JsonObject; session?: JsonObject }): Promise<void>;
  prompt(text?: string): Promise<Wire>;
}

export const CWD = '/repo/project';
export const editorPerson: Actor = { id: 'local:ana', kind: 'person', scopes: ['*'], door: 'acp' };

export interface StageOptions extends TestGatewayOptions {
  readonly relay?: Partial<RelaySettings>;
  /** What the agent says before there is anyone to write it down. */
  readonly early?: string;
}

export async function openStage({ relay: wanted = {}, early = '', ...options }: StageOptions = {}): Promise<Stage> {
  const [toEditor, fromEditor, toAgent, fromAgent] = [0, 1, 2, 3].map(
    () => new PassThrough({ highWaterMark: 1 << 20 }),
  );
  const settings = { ...PLAIN_SETTINGS, cwd: CWD, ...wanted };
  const ids = sequentialIds('relay');
  const log = { info() {}, warn() {}, error() {} };
  const wrapped = createWrappedAgent('bot');
  const home = await openTestGateway({ ...options, agents: [wrapped.backend] });
  const { bridge } = home;
  const turns = createTurns({ bridge, agent: wrapped, name: 'bot', log, thoughts: settings.thoughts });
  const link = openLink({
    editor: { input: fromEditor as PassThrough, output: toEditor as PassThrough },
    agent: { stdin: toAgent as PassThrough, stdout: fromAgent as PassThrough },
    additions: settings.additions,
  });
  const wires = createWires(link.editor, link.agent);
  const editor = createEnd(toEditor as PassThrough, fromEditor as PassThrough);
  if (early) {
    (fromAgent as PassThrough).write(early);
    await editor.received(() => true);
  }
  const relay = createRelay({
    bridge,
    person: editorPerson,
    name: 'bot',
    turns,
    agent: wrapped,
    wires,
    settings,
    log,
    ids,
  });
  link.attach(relay);
  void link.editorEnded.then(() => relay.editorGone());
  void link.agentEnded.then(() => relay.agentGone('the agent exited with 1'));
  const agent = createEnd(toAgent as PassThrough, fromAgent as PassThrough);
  onTestFinished(async () => {
    editor.close();
    await relay.editorGone();
  });
  const tasks = async () =>
    await home.runtime.store.list<Task & Row>({ object: 'task', newestFirst: true, limit: 200 });
  return {
    editor,
    agent,
    relay,
    home,
    tasks,
    async task() {
      const [newest] = await tasks();
      if (!newest) throw new Error('there is no task');
      return newest;
    },
    async greeted({ init = {}, session = {} } = {}) {
      agent.on('initialize', () => ({ protocolVersion: 1, agentCapabilities: {}, ...init }));
      agent.on('session/new', () => ({ sessionId: 's1', ...session }));
      await editor.ask('initialize', { protocolVersion: 1, clientCapabilities: {} });
      await editor.ask('session/new', { cwd: CWD, mcpServers: [] });
    },
    prompt: (text = 'go') => editor.ask('session/prompt', { sessionId: 's1', prompt: [{ type: 'text', text }] }),
  };
}

export const update = (sessionUpdate: string, more: object = {}) => ({
  sessionId: 's1',
  update: { sessionUpdate, ...more },
});
export const text = (words: string) => update('agent_message_chunk', { content: { type: 'text', text: words } });

export const OPTIONS = [
  { optionId: 'always', name: 'Always', kind: 'allow_always' },
  { optionId: 'once', name: 'Allow', kind: 'allow_once' },
  { optionId: 'no', name: 'Reject', kind: 'reject_once' },
];

/** An editor whose person picks the option of this kind. */
export function picks(kind: string): Handler {
  return ({ options }) => {
    const chosen = (options as unknown as { kind: string; optionId: string }[]).find((option) => option.kind === kind);
    return { outcome: chosen ? { outcome: 'selected', optionId: chosen.optionId } : { outcome: 'cancelled' } };
  };
}
