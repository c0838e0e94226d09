/** `tollbridge approvals`, `approve`, `deny`: the inbox from a terminal. Works beside a running gateway. */
import type { AskRecord } from '../model/asks.ts';
import type { Row } from '../ports.ts';
import { type CommonOptions, localActor, visit } from './context.ts';

type Ask = AskRecord & Row;

export async function listApprovals(options: CommonOptions & { readonly json?: boolean }): Promise<void> {
  await visit(options, async ({ bridge }) => {
    const actor = localActor();
    let after: string | undefined;
    let count = 0;
    do {
      const page = await bridge.list<Ask>(actor, {
        object: 'ask',
        where: { state: 'open' },
        limit: 200,
        ...(after && { after }),
      });
      for (const ask of page.data) process.stdout.write(options.json ? `${JSON.stringify(ask)}\n` : line(ask));
      count += page.data.length;
      after = page.next;
    } while (after);
    if (count === 0 && !options.json) process.stdout.write('Nothing is waiting for an answer.\n');
  });
}

export async function answer(
  askId: string,
  approved: boolean,
  reason: string | undefined,
  options: CommonOptions,
): Promise<void> {
  await visit(options, async ({ bridge }) => {
    await bridge.submit({
      kind: 'ask.answer',
      actor: localActor(),
      body: { ask_id: askId, approved, ...(reason && { reason }) },
    });
    process.stdout.write(`${approved ? 'Approved' : 'Denied'}: ${askId}\n`);
  });
}

function line(ask: Ask): string {
  const what = JSON.stringify(ask.action.arguments ?? {});
  const why = ask.reason ? `\n    why: ${ask.reason}` : '';
  return `${ask.id}  ${ask.question}\n    ${what}${why}\n    until ${ask.expires_at}   tollbridge approve ${ask.id}   tollbridge deny ${ask.id} "reason"\n`;
}
