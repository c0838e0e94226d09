/** `tollbridge log`: recorded events, as lines for people or as JSON for programs; new ones too, with `--follow`. */
import { type Cursor, eventId, position, type Stream } from '../../../model/events.ts';
import type { Store } from '../../../ports/index.ts';
import { type CommonOptions, lookInto } from '../../context.ts';
import { findTask } from '../../find.ts';
import { trouble } from '../../output/error-output.ts';
import { createNarrator, logLine } from '../../output/event-lines.ts';
import { untilStopped } from '../../stop-signals.ts';

export interface LogOptions extends CommonOptions {
  readonly follow?: boolean;
  readonly last?: string;
  readonly task?: string;
  readonly json?: boolean;
}

export async function showLog({ follow, last, task, json, ...options }: LogOptions): Promise<void> {
  const count = last === undefined ? undefined : countOf(last);
  await lookInto(options, async ({ store }) => {
    const stream: Stream = task ? { of: 'task', id: (await findTask(store, task)).id } : { of: 'all' };
    const after = count === undefined ? undefined : await beforeLast(store, stream, count);
    const from = { stream, ...(after && { after }) };
    const narrate = createNarrator();
    const colours = takesColours(process.stdout, process.env);
    await untilStopped(async (signal) => {
      for await (const event of follow ? store.follow(from, signal) : store.read(from)) {
        if (signal.aborted) return;
        if (json) process.stdout.write(`${JSON.stringify(event)}\n`);
        else {
          const line = narrate(event);
          if (line) process.stdout.write(logLine(event, line, colours));
        }
      }
    });
  });
}

/** `FORCE_COLOR` and `NO_COLOR` as in other programs; without either, only a terminal gets colours. */
function takesColours({ isTTY }: NodeJS.WriteStream, { FORCE_COLOR, NO_COLOR }: NodeJS.ProcessEnv): boolean {
  if (NO_COLOR) return false;
  return FORCE_COLOR ? FORCE_COLOR !== '0' : isTTY === true;
}

function countOf(text: string): number {
  if (!/^[1-9]\d*$/.test(text)) {
    throw trouble('invalid_request', `${text} is not a number of events`, 'write a whole number above 0: --last 100');
  }
  return Number(text);
}

/** The cursor before the last `count` events. Events are numbered through; those of one task have to be counted. */
async function beforeLast(store: Store, stream: Stream, count: number): Promise<Cursor | undefined> {
  if (stream.of === 'all') {
    const tip = await store.tip(stream);
    const at = tip === undefined ? 0 : (position(tip) ?? 0) - count;
    return at > 0 ? eventId(at) : undefined;
  }
  const ids: Cursor[] = [];
  for await (const { id } of store.read({ stream })) ids.push(id);
  return ids.at(-count - 1);
}
