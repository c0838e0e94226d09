/**
 * `tollbridge demo`: the whole idea in one run, with a built-in agent and tools: a read passes by rule, an act with an
 * effect outside asks a person, and a receipt proves it. Everything is in a directory of its own. No network, no keys,
 * no port unless one is requested or a person is asked, who may then answer in the console.
 */
import { existsSync } from 'node:fs';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Actor } from '../../../model/actions.ts';
import type { AskRecord } from '../../../model/asks.ts';
import type { Closable, Row } from '../../../ports/index.ts';
import type { CoreRuntime } from '../../../runtime/assemble.ts';
import { type Config, readConfig } from '../../../runtime/config/config.ts';
import { createLogger } from '../../../runtime/logger.ts';
import { hasLog } from '../../../store/index.ts';
import { type CommonOptions, localActor, requireUsable } from '../../context.ts';
import { trouble } from '../../output/error-output.ts';
import { EXIT } from '../../output/exit-codes.ts';
import { ownName } from '../../own-name.ts';
import { portOf } from '../../port.ts';
import { writeReceipts } from '../proof/archive.ts';
import { createDemoOutput } from './demo-output.ts';
import { type AnswerOptions, watch } from './demo-watch.ts';

export interface DemoOptions extends CommonOptions, AnswerOptions {
  readonly json?: boolean;
}

/** The agent's task; see src/demo/README.md. */
const WORK = 'read plan then send the plan to ana';

export async function demo(options: DemoOptions): Promise<number> {
  if (options.yes && options.no) {
    throw trouble('invalid_request', '--yes and --no cannot both be the answer', 'give one of them');
  }
  // A person who is asked may answer in the console too; a script that answers by itself opens no port.
  const asks = !options.yes && !options.no && (process.stdin.isTTY || options.wait === true);
  const port = options.port === undefined ? (asks ? 0 : undefined) : portOf(options.port);
  const dir = options.data ? resolve(options.data) : await mkdtemp(join(tmpdir(), 'tollbridge-demo-'));
  await requireUsable(dir);
  await claim(dir);
  const name = ownName({ argv: process.argv, env: process.env, cwd: process.cwd() });
  const output = createDemoOutput({ dir, name, json: options.json === true });
  output.begin();
  const config = await readConfig({
    env: options.config ? process.env : {},
    cwd: dir,
    data: dir,
    ...(options.config && { file: resolve(options.config) }),
    ...(port !== undefined && { port }),
  });
  const stage = await openStage(config, port !== undefined);
  try {
    if (stage.url) output.listens(stage.url, stage.token, await stage.consoleLink?.());
    const actor = localActor();
    const taskId = await taskOf(stage.core, actor);
    const came = await watch(stage.core, actor, taskId, { ...options, output });
    if (came === 'interrupted') {
      output.interrupted();
      return EXIT.interrupted;
    }
    await output.end(came, await receiptFiles(stage.core, dir));
    return EXIT.done;
  } finally {
    await stage.close();
  }
}

/** Opening a log means resuming its unfinished work; with only the demo's agent that would end other agents' work. */
async function claim(dir: string): Promise<void> {
  const mark = join(dir, '.tollbridge-demo');
  if ((await hasLog({ path: join(dir, 'log.db') })) && !existsSync(mark)) {
    throw trouble(
      'conflict',
      `${dir} holds a log that is not a demo's`,
      'name an empty directory with --data, or none at all',
    );
  }
  await writeFile(mark, 'What is here was written by "tollbridge demo" and can be removed.\n', { mode: 0o600 });
}

interface Stage extends Closable {
  readonly core: CoreRuntime;
  readonly url?: string;
  readonly token?: string | undefined;
  readonly consoleLink?: (() => Promise<string>) | undefined;
}

/** With a port the whole gateway, so that the question can be answered over HTTP too; otherwise only the runtime. */
async function openStage(config: Config, withPort: boolean): Promise<Stage> {
  if (withPort) {
    const { startGateway } = await import('../../../runtime/gateway.ts');
    return await startGateway(config);
  }
  const [{ createRuntime, createSurroundings }, { createDemoAgent }, { createDemoTools }, { setTimeout: sleep }] =
    await Promise.all([
      import('../../../runtime/create-runtime.ts'),
      import('../../../demo/agent.ts'),
      import('../../../demo/tools.ts'),
      import('node:timers/promises'),
    ]);
  const pause = (ms: number, signal: AbortSignal) => sleep(ms, undefined, { signal });
  return await createRuntime(config, {
    ...createSurroundings(createLogger),
    name: 'demo',
    mounts: 'harnesses',
    prepare: () => ({ backends: [createDemoAgent({ pause })], tools: [createDemoTools()] }),
  });
}

/** The task that was left waiting in this directory, or a new one. */
async function taskOf({ bridge }: CoreRuntime, actor: Actor): Promise<string> {
  const waiting = await bridge.list<AskRecord & Row>(actor, { object: 'ask', where: { state: 'open' }, limit: 1 });
  const [left] = waiting.data;
  if (left) return left.task_id;
  const body = { workspace_id: 'workspace_default' };
  const session = await bridge.submit({ kind: 'session.create', actor, body });
  const { resource } = await bridge.submit({
    kind: 'task.submit',
    actor,
    body: { session_id: session.resource.id, input: { text: WORK }, agent: 'demo' },
  });
  return resource.id;
}

async function receiptFiles({ store, keyring }: CoreRuntime, dir: string): Promise<string> {
  const files = join(dir, 'receipts');
  await writeReceipts(files, {
    store,
    keys: keyring.jwks(),
    signer: keyring.signer(),
    now: new Date().toISOString(),
  });
  return files;
}
