/** `tollbridge approvals`, `approve`, `deny`: the inbox from a terminal. Works beside a running gateway. */
import { systemClock } from '../core/clock.ts';
import { detailsText } from '../inbox/question-text.ts';
import { viewQuestion } from '../inbox/question-view.ts';
import type { AskRecord, PendingAct } from '../model/asks.ts';
import { asFault, Fault } from '../model/faults.ts';
import type { AskClosedPayload, AskOpenedPayload } from '../model/payloads.ts';
import type { Row } from '../ports.ts';
import { rulesOnRecord } from '../rules-on-record.ts';
import { whySupervised } from '../wire/supervision.ts';
import { type CommonOptions, configFrom, type LogBook, localActor, lookInto, visit } from './context.ts';
import { findAsk } from './find.ts';
import { calledAgain } from './own-name.ts';
import { requirePerson } from './person-only.ts';
import { brief, shortId } from './plain.ts';
import { untilStopped } from './stopping.ts';

type Ask = AskRecord & Row;

export interface ApprovalsOptions extends CommonOptions {
  readonly json?: boolean;
  readonly watch?: boolean;
}

export async function listApprovals(options: ApprovalsOptions): Promise<void> {
  await lookInto(options, async (looked) => {
    const book = withoutActsForAgents(looked);
    const { store } = book;
    await untilStopped(async (signal) => {
      // Taken first: what is opened while the list is read must not be missed.
      const from = await store.tip({ of: 'all' });
      const shown = await showOpen(book, options);
      if (shown.size === 0 && !options.json) process.stdout.write('Nothing is waiting for an answer.\n');
      if (options.watch) await watchAsks(book, options, { shown, from, signal });
    });
  });
}

/** An agent under supervision may not answer, so it sees of an act what the log has. Supervision may begin during a watch. */
function withoutActsForAgents({ acts, ...book }: LogBook): LogBook {
  const read = async (askId: string) => {
    const why = whySupervised(book.config.dataDir);
    if (why === undefined) return await acts.read(askId);
    throw new Fault(
      'permission_denied',
      `the whole act is shown to a person, and this command is not run by one: ${why}`,
    );
  };
  return { acts: { read }, ...book };
}

async function showOpen({ store, acts }: LogBook, { json, ...options }: ApprovalsOptions): Promise<Set<string>> {
  const again = calledAgain(options);
  const shown = new Set<string>();
  for (let after: string | undefined; ; ) {
    const page = await store.list<Ask>({
      object: 'ask',
      where: { state: 'open' },
      limit: 200,
      ...(after && { after }),
    });
    for (const ask of page) {
      shown.add(ask.id);
      process.stdout.write(json ? await inJson(ask, acts) : await lines(ask, again, acts));
    }
    after = page.at(-1)?.id;
    if (page.length < 200 || !after) return shown;
  }
}

interface Watching {
  readonly shown: ReadonlySet<string>;
  readonly from: string | undefined;
  readonly signal: AbortSignal;
}

/** Questions as they come, and how each was answered, until somebody stops it. */
async function watchAsks(
  { store, acts }: LogBook,
  { json, ...options }: ApprovalsOptions,
  { shown, from, signal }: Watching,
): Promise<void> {
  const again = calledAgain(options);
  for await (const event of store.follow({ stream: { of: 'all' }, ...(from && { after: from }) }, signal)) {
    if (event.replayed) continue;
    if (event.event === 'vendor.tollbridge.ask_opened') {
      const { ask } = event.payload as unknown as AskOpenedPayload;
      if (shown.has(ask.id)) continue;
      process.stdout.write(json ? await inJson(ask, acts) : await lines(ask, again, acts));
    } else if (event.event === 'vendor.tollbridge.ask_closed') {
      const { ask_id, state, by, reason } = event.payload as unknown as AskClosedPayload;
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
  options: CommonOptions & { readonly json?: boolean },
): Promise<void> {
  requirePerson((await configFrom(options)).dataDir, 'answering a question');
  await visit(options, async ({ bridge, store }, { dataDir }) => {
    const ask = await findAsk(store, id);
    // Rules have a word in who may answer. Not knowing them is told as that, and not as their no.
    await rulesOnRecord(dataDir, store);
    const { resource } = await bridge.submit({
      kind: 'ask.answer',
      actor: { ...localActor(), interactive: true },
      body: { ask_id: ask.id, approved, ...(reason && { reason }) },
    });
    process.stdout.write(
      options.json ? `${JSON.stringify(resource)}\n` : `${approved ? 'Approved' : 'Denied'}: ${ask.id}\n`,
    );
  });
}

/** The act as it will run, whole: a question is only as good as what it shows. */
async function lines(ask: AskRecord, again: string, acts: LogBook['acts']): Promise<string> {
  const { act, trouble } = await wholeAct(ask, acts);
  const view = viewQuestion(ask, act, systemClock.now());
  const details = detailsText(view).split('\n');
  if (trouble) details.push(`A yes is refused: ${brief(trouble, 300)}`);
  const yes = ask.kind === 'approval' ? [`${again} approve ${ask.id}`] : [];
  return [
    `${shortId(ask.id)}  ${view.headline}`,
    ...[...details, ...yes, `${again} deny ${ask.id} "reason"`].map((line) => `    ${line}`),
    '',
  ].join('\n');
}

/** Only for those who may answer; others see what the log has. */
async function wholeAct(
  ask: AskRecord,
  acts: LogBook['acts'],
): Promise<{ readonly act?: PendingAct; readonly trouble?: string }> {
  const { id, scopes } = localActor();
  const addressed = ask.to.length === 0 || ask.to.includes(id) || ask.to.some((word) => scopes.includes(word));
  if (ask.state !== 'open' || ask.kind !== 'approval' || !addressed) return {};
  try {
    const act = await acts.read(ask.id);
    return act ? { act } : { trouble: 'the whole act is not kept here' };
  } catch (cause) {
    return { trouble: asFault(cause).message };
  }
}

/** For programs: the question as it is on record, and the whole act beside it. */
async function inJson(ask: AskRecord, acts: LogBook['acts']): Promise<string> {
  const { act } = await wholeAct(ask, acts);
  return `${JSON.stringify(act ? { ...ask, act } : ask)}\n`;
}
