/**
 * `tollbridge demo`: the whole idea in one run, with a built-in agent and tools: a read passes by rule, an act that leaves
 * the house asks a person, and a receipt proves it. Everything is in a directory of its own. No network, no keys, no port
 * unless one is asked for.
 */
import { existsSync } from 'node:fs';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { House } from '../compose.ts';
import { type Config, readConfig } from '../config.ts';
import type { Actor } from '../model/actions.ts';
import type { AskRecord } from '../model/asks.ts';
import type { CoreEvent } from '../model/events.ts';
import { Fault } from '../model/faults.ts';
import type { AskOpenedPayload } from '../model/payloads.ts';
import type { Closable, Row } from '../ports.ts';
import { writeReceipts } from './archive.ts';
import { trouble } from './complaint.ts';
import { type CommonOptions, localActor, open, requireUsable } from './context.ts';
import { createTelling, type Telling } from './demo-telling.ts';
import { EXIT } from './exit-codes.ts';
import { ownName } from './own-name.ts';
import { askYesOrNo } from './person.ts';
import { portOf } from './port.ts';
import { onStop } from './stopping.ts';

export interface DemoOptions extends CommonOptions {
  readonly yes?: boolean;
  readonly no?: boolean;
  readonly wait?: boolean;
  readonly port?: string;
  readonly json?: boolean;
}

/** What the agent is told to do; see src/demo/README.md. */
const WORK = 'read plan then send the plan to ana';
const ENDS = ['task.completed', 'task.failed', 'task.canceled'];

export async function demo(options: DemoOptions): Promise<number> {
  if (options.yes && options.no) {
    throw trouble('invalid_request', '--yes and --no cannot both be the answer', 'give one of them');
  }
  const dir = options.data ? resolve(options.data) : await mkdtemp(join(tmpdir(), 'tollbridge-demo-'));
  await requireUsable(dir);
  await claim(dir);
  const name = ownName({ argv: process.argv, env: process.env, cwd: process.cwd() });
  const telling = createTelling({ dir, name, json: options.json === true });
  telling.begin();
  const config = await readConfig({
    env: {},
    cwd: dir,
    data: dir,
    ...(options.config && { file: resolve(options.config) }),
    ...(options.port !== undefined && { port: portOf(options.port) }),
  });
  const stage = await openStage(config, options.port !== undefined);
  try {
    if (stage.url) telling.listens(stage.url, stage.token);
    const actor = localActor();
    const taskId = await taskOf(stage.house, actor);
    const came = await watch(stage.house, actor, taskId, { ...options, telling });
    if (came === 'interrupted') {
      telling.interrupted();
      return EXIT.interrupted;
    }
    await telling.end(came, await receiptFiles(stage.house, dir));
    return EXIT.done;
  } finally {
    await stage.close();
  }
}

/** Opening a log means going on with what it left undone; with only the demo's agent that would end other agents' work. */
async function claim(dir: string): Promise<void> {
  const mark = join(dir, '.tollbridge-demo');
  if (existsSync(join(dir, 'log.db')) && !existsSync(mark)) {
    throw trouble(
      'conflict',
      `${dir} holds a log that is not a demo's`,
      'name an empty directory with --data, or none at all',
    );
  }
  await writeFile(mark, 'What is here was written by "tollbridge demo" and can be removed.\n', { mode: 0o600 });
}

interface Stage extends Closable {
  readonly house: House;
  readonly url?: string;
  readonly token?: string | undefined;
}

/** With a port the whole gateway, so that the question can be answered over HTTP too; otherwise only what is needed. */
async function openStage(config: Config, withPort: boolean): Promise<Stage> {
  if (withPort) {
    const { startGateway } = await import('../gateway.ts');
    return await startGateway(config);
  }
  const [{ createDemoAgent }, { createDemoTools }, { setTimeout: sleep }] = await Promise.all([
    import('../demo/agent.ts'),
    import('../demo/tools.ts'),
    import('node:timers/promises'),
  ]);
  const pause = (ms: number, signal: AbortSignal) => sleep(ms, undefined, { signal });
  const house = await open(config, { backends: [createDemoAgent({ pause })], tools: [createDemoTools()] });
  try {
    await house.start();
  } catch (cause) {
    await house.close();
    throw cause;
  }
  return { house, close: () => house.close() };
}

/** The task that was left waiting in this directory, or a new one. */
async function taskOf({ bridge }: House, actor: Actor): Promise<string> {
  const waiting = await bridge.list<AskRecord & Row>(actor, { object: 'ask', where: { state: 'open' }, limit: 1 });
  const [left] = waiting.data;
  if (left) return left.task_id;
  const workspace_id = 'workspace_demo';
  await bridge
    .submit({
      kind: 'resource.create',
      actor,
      body: { object: 'workspace', id: workspace_id, body: { name: 'demo', root: 'tollbridge://demo' } },
    })
    .catch((thrown) => {
      if (!(thrown instanceof Fault && thrown.kind === 'conflict')) throw thrown;
    });
  const session = await bridge.submit({ kind: 'session.create', actor, body: { workspace_id } });
  const { resource } = await bridge.submit({
    kind: 'task.submit',
    actor,
    body: { session_id: session.resource.id, input: { text: WORK }, agent: 'demo' },
  });
  return resource.id;
}

interface Watching extends DemoOptions {
  readonly telling: Telling;
}

/** Tells what happens until the task has ended, and puts its questions to whoever is here. */
async function watch(house: House, actor: Actor, taskId: string, how: Watching): Promise<CoreEvent | 'interrupted'> {
  const stop = new AbortController();
  const open = new Map<string, AbortController>();
  const letGo = onStop(() => stop.abort());
  let failure: unknown;

  const answering = async (ask: AskRecord, withdraw: AbortSignal) => {
    const said = await answerFor(ask, withdraw, how);
    if (said === 'interrupted') return stop.abort();
    if (said === undefined) return;
    const body = { ask_id: ask.id, ...said };
    await house.bridge.submit({ kind: 'ask.answer', actor, body }).catch((thrown) => {
      // Somebody else was quicker; the log says who, and the telling with it.
      if (!(thrown instanceof Fault && thrown.kind === 'conflict')) throw thrown;
    });
  };
  const put = (ask: AskRecord) => {
    const withdraw = new AbortController();
    open.set(ask.id, withdraw);
    answering(ask, withdraw.signal).catch((thrown) => {
      failure = thrown;
      stop.abort();
    });
  };

  const asked: string[] = [];
  const past = (await house.store.tip({ of: 'task', id: taskId })) ?? '';
  try {
    for await (const event of house.bridge.follow(actor, { stream: { of: 'task', id: taskId } }, stop.signal)) {
      if (event.event === 'vendor.tollbridge.ask_closed') open.get(String(event.payload.ask_id))?.abort();
      how.telling.event(event);
      if (event.event === 'vendor.tollbridge.ask_opened') {
        asked.push((event.payload as unknown as AskOpenedPayload).ask.id);
      }
      // What is past is told first, and a question in it is put only if it is still one.
      for (const id of event.id >= past ? asked.splice(0) : []) {
        const ask = await house.bridge.view<AskRecord & Row>(actor, 'ask', id);
        if (ask.state === 'open') put(ask);
      }
      if (ENDS.includes(event.event)) return event;
    }
  } finally {
    letGo();
    for (const withdraw of open.values()) withdraw.abort();
  }
  if (failure) throw failure;
  return 'interrupted';
}

/** Undefined when it is left to others. */
async function answerFor(
  ask: AskRecord,
  withdraw: AbortSignal,
  { yes, no, wait, port, telling }: Watching,
): Promise<{ approved: boolean; reason?: string } | 'interrupted' | undefined> {
  telling.question(ask);
  if (yes || no) {
    telling.answeredByOption(yes ? 'yes' : 'no');
    return { approved: yes === true };
  }
  if (wait) return undefined;
  const said = await askYesOrNo(telling.terminal, 'Allow it? [y/n] ', withdraw);
  if (said === 'interrupted') return said;
  if (said === 'withdrawn') {
    telling.answeredElsewhere();
    return undefined;
  }
  if (said !== 'gone') return { approved: said === 'yes' };
  if (port !== undefined) return undefined;
  telling.nobodyHere();
  return { approved: false, reason: 'standard input ended without an answer' };
}

async function receiptFiles({ store, keyring }: House, dir: string): Promise<string> {
  const files = join(dir, 'receipts');
  await writeReceipts(files, {
    store,
    keys: keyring.jwks(),
    signer: keyring.signer(),
    now: new Date().toISOString(),
  });
  return files;
}
