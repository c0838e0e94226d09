/** `tollbridge approvals`, `approve`, `deny`: the inbox from a terminal. Works beside a running gateway. */
import type { AskRecord } from '../model/asks.ts';
import type { AskClosedPayload, AskOpenedPayload } from '../model/payloads.ts';
import type { Row, Store } from '../ports.ts';
import { rulesOnRecord } from '../rules-on-record.ts';
import { type CommonOptions, configFrom, localActor, lookInto, visit } from './context.ts';
import { findAsk } from './find.ts';
import { calledAgain } from './own-name.ts';
import { requirePerson } from './person-only.ts';
import { brief, briefArguments, plain, shortId } from './plain.ts';
import { untilStopped } from './stopping.ts';

type Ask = AskRecord & Row;

export interface ApprovalsOptions extends CommonOptions {
  readonly json?: boolean;
  readonly watch?: boolean;
}

export async function listApprovals(options: ApprovalsOptions): Promise<void> {
  await lookInto(options, async ({ store }) => {
    await untilStopped(async (signal) => {
      // Taken first: what is opened while the list is read must not be missed.
      const from = await store.tip({ of: 'all' });
      const shown = await showOpen(store, options);
      if (shown.size === 0 && !options.json) process.stdout.write('Nothing is waiting for an answer.\n');
      if (options.watch) await watchAsks(store, options, { shown, from, signal });
    });
  });
}

async function showOpen(store: Store, { json, ...options }: ApprovalsOptions): Promise<Set<string>> {
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
      process.stdout.write(json ? `${JSON.stringify(ask)}\n` : lines(ask, again));
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
  store: Store,
  { json, ...options }: ApprovalsOptions,
  { shown, from, signal }: Watching,
): Promise<void> {
  const again = calledAgain(options);
  for await (const event of store.follow({ stream: { of: 'all' }, ...(from && { after: from }) }, signal)) {
    if (event.replayed) continue;
    if (event.event === 'vendor.tollbridge.ask_opened') {
      const { ask } = event.payload as unknown as AskOpenedPayload;
      if (shown.has(ask.id)) continue;
      process.stdout.write(json ? `${JSON.stringify(ask)}\n` : lines(ask, again));
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

/** The act comes first, as it would run: a question is only as good as what it shows. */
function lines(ask: AskRecord, again: string): string {
  const why = ask.reason
    ? `    why:   ${brief(ask.reason, 160)}${ask.rule_id ? `  [rule ${brief(ask.rule_id)}]` : ''}\n`
    : '';
  const to = ask.to.length > 0 ? `    for:   ${plain(ask.to.join(', '))}\n` : '';
  return [
    `${shortId(ask.id)}  ${brief(ask.question, 200)}\n`,
    `    what:  ${brief(String(ask.action.tool ?? ask.action.kind ?? ask.kind))} (${briefArguments(ask.action.arguments ?? {}, 400)})\n`,
    why,
    to,
    `    until: ${ask.expires_at}\n`,
    `    ${again} approve ${ask.id}\n`,
    `    ${again} deny ${ask.id} "reason"\n`,
  ].join('');
}
