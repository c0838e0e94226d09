/** `tollbridge approvals`, `approve`, `deny`: the inbox in a terminal. Works beside a running gateway. */

import { readFile } from 'node:fs/promises';
import { asPeopleSee } from '../../../core/approvals/whole-acts.ts';
import { systemClock } from '../../../core/clock.ts';
import { detailsText } from '../../../inbox/question-text.ts';
import { viewQuestion } from '../../../inbox/question-view.ts';
import type { AskRecord, PendingAct } from '../../../model/asks.ts';
import { asFault, Fault } from '../../../model/faults.ts';
import type { Json, JsonObject } from '../../../model/schema.ts';
import { asText } from '../../../model/values/as-text.ts';
import { everyRow } from '../../../model/values/every-row.ts';
import { isObject } from '../../../model/values/is-object.ts';
import type { Row } from '../../../ports/index.ts';
import { parseStrict } from '../../../receipt/seal/strict-json.ts';
import { rulesOnRecord } from '../../../runtime/console/rules-on-record.ts';
import { whySupervised } from '../../../transport/process/supervision.ts';
import { type CommonOptions, configFrom, localActor, lookInto, type OpenLog, withCoreRuntime } from '../../context.ts';
import { findAsk } from '../../find.ts';
import { brief, shortId } from '../../output/terminal-text.ts';
import { calledAgain } from '../../own-name.ts';
import { requirePerson } from '../../person-only.ts';
import { untilStopped } from '../../stop-signals.ts';

type Ask = AskRecord & Row;

export interface ApprovalsOptions extends CommonOptions {
  readonly json?: boolean;
  readonly watch?: boolean;
}

export async function listApprovals(options: ApprovalsOptions): Promise<void> {
  await lookInto(options, async (looked) => {
    const openLog = withoutActsForAgents(looked);
    const { store } = openLog;
    await untilStopped(async (signal) => {
      // Taken first, so that a question opened while the list is read is not missed.
      const from = await store.tip({ of: 'all' });
      const shown = await showOpen(openLog, options);
      if (shown.size === 0 && !options.json) process.stdout.write('Nothing is waiting for an answer.\n');
      if (options.watch) await watchAsks(openLog, options, { shown, from, signal });
    });
  });
}

/**
 * A supervised agent may not answer, so it sees the log's redacted version of an act. Supervision may begin during a
 * watch.
 */
function withoutActsForAgents({ acts, ...openLog }: OpenLog): OpenLog {
  const read = async (askId: string) => {
    const why = whySupervised(openLog.config.dataDir);
    if (why === undefined) return await acts.read(askId);
    throw new Fault(
      'permission_denied',
      `the whole act is shown to a person, and this command is not run by one: ${why}`,
    );
  };
  return { acts: { read }, ...openLog };
}

async function showOpen({ store, acts }: OpenLog, { json, ...options }: ApprovalsOptions): Promise<Set<string>> {
  const again = calledAgain(options);
  const shown = new Set<string>();
  const open = { object: 'ask', where: { state: 'open' } };
  for await (const ask of everyRow((paging) => store.list<Ask>({ ...open, ...paging }))) {
    shown.add(ask.id);
    process.stdout.write(json ? await inJson(ask, acts) : await lines(ask, again, acts));
  }
  return shown;
}

interface Watching {
  readonly shown: ReadonlySet<string>;
  readonly from: string | undefined;
  readonly signal: AbortSignal;
}

/** New questions and their answers, until interrupted. */
async function watchAsks(
  { store, acts }: OpenLog,
  { json, ...options }: ApprovalsOptions,
  { shown, from, signal }: Watching,
): Promise<void> {
  const again = calledAgain(options);
  for await (const event of store.follow({ stream: { of: 'all' }, ...(from && { after: from }) }, signal)) {
    if (event.replayed) continue;
    if (event.event === 'vendor.tollbridge.ask_opened') {
      const { ask } = event.payload;
      if (shown.has(ask.id)) continue;
      process.stdout.write(json ? await inJson(ask, acts) : await lines(ask, again, acts));
    } else if (event.event === 'vendor.tollbridge.ask_closed') {
      const { ask_id, state, by, reason } = event.payload;
      const why = reason ? `: ${brief(reason)}` : '';
      process.stdout.write(
        json
          ? `${JSON.stringify(await store.get<Ask>('ask', ask_id))}\n`
          : `${shortId(ask_id)}  ${state} by ${brief(by)}${why}\n`,
      );
    }
  }
}

export async function answer(
  id: string,
  approved: boolean,
  reason: string | undefined,
  options: CommonOptions & {
    readonly json?: boolean;
    readonly value?: string;
    readonly arguments?: string;
    readonly for?: string;
  },
): Promise<void> {
  const changed = options.arguments === undefined ? undefined : await readArguments(options.arguments);
  requirePerson((await configFrom(options)).dataDir, 'answering a question');
  await withCoreRuntime(options, async ({ bridge, store, files }) => {
    const ask = await findAsk(store, id);
    // Rules decide who may answer. Missing rules are reported as that, and not as a denial.
    await rulesOnRecord(files, store);
    const actor = { ...localActor(), interactive: true } as const;
    const { resource } = await bridge.submit({
      kind: 'ask.answer',
      actor,
      body: {
        ask_id: ask.id,
        ...(options.value === undefined ? { approved } : { value: valueFor(ask, options.value) }),
        ...(changed && { arguments: changed }),
        ...(reason && { reason }),
        ...(options.for !== undefined && { for: options.for }),
      },
    });
    const longer = options.for === undefined ? '' : ` (and ${asText(ask.action.tool)} for ${options.for})`;
    process.stdout.write(
      options.json
        ? `${JSON.stringify(resource)}\n`
        : `${options.value === undefined ? (approved ? 'Approved' : 'Denied') : 'Answered'}: ${ask.id}${longer}\n`,
    );
  });
}

/** A text is taken as it is typed; anything else that the question asks for is JSON. */
function valueFor({ kind, schema }: AskRecord, text: string): Json {
  if (kind !== 'input') throw new Fault('invalid_request', 'this question wants a yes or a no, not a value');
  const { type } = (schema ?? {}) as JsonObject;
  if (type === undefined || type === 'string') return text;
  try {
    return parseStrict(text) as Json;
  } catch (cause) {
    throw new Fault('invalid_request', `--value: ${cause instanceof Error ? cause.message : 'not JSON'}`, { cause });
  }
}

/** `{…}` or `@file`. Read strictly: of a repeated member the person could see one value and the tool get another. */
async function readArguments(source: string): Promise<JsonObject> {
  const text = source.startsWith('@') ? await readFile(source.slice(1), 'utf8').catch(unreadable) : source;
  let value: unknown;
  try {
    value = parseStrict(text);
  } catch (cause) {
    throw new Fault('invalid_request', `--arguments: ${cause instanceof Error ? cause.message : 'not JSON'}`, {
      cause,
    });
  }
  if (isObject(value)) return value as JsonObject;
  throw new Fault('invalid_request', '--arguments has to be a JSON object');
}

function unreadable(cause: NodeJS.ErrnoException): never {
  throw new Fault('invalid_request', `--arguments: the file cannot be read (${cause.code ?? 'unknown'})`, { cause });
}

/** The act as it will run, whole. */
async function lines(ask: AskRecord, again: string, acts: OpenLog['acts']): Promise<string> {
  const { act, trouble } = await wholeAct(ask, acts);
  const view = viewQuestion(ask, act, systemClock.now());
  const details = detailsText(view).split('\n');
  if (trouble) details.push(`A yes is refused: ${brief(trouble, 300)}`);
  const yes = ask.kind === 'approval' ? `${again} approve ${ask.id}` : `${again} approve ${ask.id} --value "answer"`;
  return [
    `${shortId(ask.id)}  ${view.headline}`,
    ...[...details, yes, `${again} deny ${ask.id} "reason"`].map((line) => `    ${line}`),
    '',
  ].join('\n');
}

/** Only for callers who may answer; others see the log's redacted version. */
async function wholeAct(
  ask: AskRecord,
  acts: OpenLog['acts'],
): Promise<{ readonly act?: PendingAct; readonly trouble?: string }> {
  const { id, scopes } = localActor();
  const addressed = ask.to.length === 0 || ask.to.includes(id) || ask.to.some((word) => scopes.includes(word));
  if (ask.state !== 'open' || ask.kind !== 'approval' || !addressed) return {};
  try {
    const act = await acts.read(ask.id);
    return act ? { act: asPeopleSee(act) } : { trouble: 'the whole act is not kept here' };
  } catch (cause) {
    return { trouble: asFault(cause).message };
  }
}

/** For programs: the recorded question, with the whole act beside it. */
async function inJson(ask: AskRecord, acts: OpenLog['acts']): Promise<string> {
  const { act } = await wholeAct(ask, acts);
  return `${JSON.stringify(act ? { ...ask, act } : ask)}\n`;
}
