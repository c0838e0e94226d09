/** One story in one cell: a client at a door gives the work, does its steps, and both gateways' accounts are read afterwards. */
import type { CoreEvent } from '../../src/model/events.ts';
import type { Receipt } from '../../src/model/receipt.ts';
import { checkLinks } from '../../src/receipt/verify/linked.ts';
import { verifyReceipt } from '../../src/receipt/verify/verify.ts';
import type { Aspect } from '../stories/aspects.ts';
import type { Step, Story } from '../stories/story.ts';
import { eventually } from '../support/eventually.ts';
import type { Setup } from './backends.ts';
import type { Work } from './doors/door.ts';
import { DOOR_CLIENTS, type Door } from './doors/index.ts';
import { type Gateway, type Loose, overAt } from './gateway-client.ts';
import { accountOf } from './stories.ts';

export interface Account {
  readonly task: string;
  readonly aspects: Readonly<Record<Aspect, unknown>>;
  /** What was seen that must never be, in sentences. */
  readonly faults: readonly string[];
  /** Files that the client could not get. */
  readonly missing: readonly string[];
  readonly left: Story['leaves'];
  /** What the log says could not be carried. */
  readonly loss: readonly Loose[];
}

const NOTES = {
  plan: 'First look, then leap.',
  todo: 'Water the plants. Call Ana.',
  readme: 'These notes live in memory and are gone with the process.',
};

/** `there`: the question of the story is answered by a person at the far gateway. */
export async function performCell(setup: Setup, door: Door, story: Story, there = false): Promise<Account> {
  const { near, far, hands } = setup;
  hands.effects();
  const work = await DOOR_CLIENTS[door].give(setup, story.world.says);
  const missing: string[] = [];
  const faults: string[] = [];
  try {
    const asked = there && far ? { ...work, ...personAt(far) } : work;
    for (const step of story.steps) await take(step, asked, setup, missing);
    const shown = await work.ended();
    const task = await work.task();
    const state = await overAt(near, task);
    if (shown.state !== state) faults.push(`the client was told ${shown.state}, the task is ${state}`);
    const { receipt, events } = await recordsOf(near, task);
    const aspects = accountOf(receipt, events);
    const said = (aspects.said as string[]).join('');
    // A message that was cut off by a cancel is whole nowhere, and a failure has words of its own beside the agent's.
    const whole = state === 'COMPLETED' ? shown.text === said : state === 'CANCELED' || shown.text.startsWith(said);
    if (!whole) faults.push(`the client was told ${JSON.stringify(shown.text)} instead of ${JSON.stringify(said)}`);
    faults.push(...(await checkReceipts(near, far, receipt)));
    const loss = events.flatMap(({ payload }) => ((payload as Loose).loss ?? []) as Loose[]);
    return { task, aspects, faults, missing, left: leftBy(hands.effects()), loss };
  } finally {
    await work.close();
  }
}

function personAt(far: Gateway): Pick<Work, 'asked' | 'answer'> {
  const open = async () => (await far.list('/v1/permission-requests?status=pending'))[0];
  return {
    asked: async () => void (await eventually(open, 'a question at the far gateway')),
    answer: async (answer) => void (await far.post(`/v1/permission-requests/${(await open()).id}/respond`, answer)),
  };
}

async function take(step: Step, work: Work, setup: Setup, missing: string[]): Promise<void> {
  if ('answer' in step) await work.answer(step.answer);
  else if ('cancel' in step) await work.cancel(step.cancel.reason);
  else if ('drop_reader_after' in step) await work.drop();
  else if ('read_on' in step) await work.readOn();
  else if ('download' in step) {
    const { name, text } = step.download;
    await work.ended();
    if ((await work.file(name)) !== text) missing.push(name);
  } else if ('until' in step && step.until === 'held') await held(work, setup);
  else if ('until' in step && (step.until as Loose).event === 'vendor.tollbridge.ask_opened') await work.asked();
}

/** The work is under way, as far as the near gateway knows; a mail that takes long is on its way, too. */
async function held(work: Work, { near, hands }: Setup): Promise<void> {
  const task = await work.task();
  const underWay = async () => {
    const events = await near.list(`/v1/tasks/${task}/events`);
    if (events.some(({ event }) => event === 'tool.requested')) return hands.journal().includes('begun slow_mail');
    return events.some(({ event }) => event === 'vendor.tollbridge.message_delta');
  };
  await eventually(underWay, 'the work to be under way', { timeoutMs: 60_000 });
}

async function recordsOf(at: Gateway, task: string): Promise<{ receipt: Receipt; events: CoreEvent[] }> {
  const [found] = await at.list(`/v1/tasks/${task}/receipts`);
  return { receipt: found.wire.payload, events: await at.list(`/v1/tasks/${task}/events`) };
}

async function checkReceipts(near: Gateway, far: Gateway | undefined, receipt: Receipt): Promise<string[]> {
  const keysOf = (at: Gateway) => at.get('/.well-known/harn-receipt-keys.json');
  const own = verifyReceipt(receipt, { keys: await keysOf(near) });
  const faults = own.valid ? [] : [`the receipt is not valid: ${own.reason}`];
  const named = (receipt.metadata?.linked_receipts ?? []) as Loose[];
  if (!far || named.length === 0) return faults;
  const others: Receipt[] = [];
  for (const { task_id } of named)
    for (const each of await far.list(`/v1/tasks/${String(task_id).replace(/^run_/, 'task_')}/receipts`))
      others.push(each.wire.payload);
  const keys = await keysOf(far);
  const trouble = (each: Receipt) => {
    const { valid, reason } = verifyReceipt(each, { keys });
    return valid ? {} : { trouble: reason ?? 'unknown' };
  };
  const links = checkLinks([receipt], { receipts: others.map((each) => ({ receipt: each, ...trouble(each) })) });
  const back = checkLinks(others, { receipts: [{ receipt }] });
  for (const { state, reason } of [...links, ...back])
    if (state !== 'linked') faults.push(`a link between the receipts is ${state}: ${reason}`);
  return faults;
}

/** What the tools did, as the story has it. */
function leftBy(effects: readonly string[]): Story['leaves'] {
  const outbox: { to: string; text: string }[] = [];
  const notes: Record<string, string> = { ...NOTES };
  for (const line of effects) {
    const [, tool, args] = /^(\S+) \S+ (\{.*\})$/.exec(line) ?? [];
    const { name, to, text } = JSON.parse(args ?? '{}');
    if (tool === 'send_mail') outbox.push({ to, text });
    if (tool === 'write_note') notes[name] = text;
    if (tool === 'delete_note') delete notes[name];
  }
  return { outbox, notes };
}
