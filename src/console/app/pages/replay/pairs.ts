/** The events of a replay beside those of its source, and which of them differ. */
import { own } from '../../../../model/values/own.ts';
import { bag, type LogEvent, toRow } from '../../rows.ts';

/** What went in and what came of it, whole. Two runs of the same work cannot share names and times. */
const CONTENT = [
  'name',
  'input',
  'output',
  'error',
  'text',
  'diff',
  'entries',
  'input_tokens',
  'output_tokens',
  'usd_micros',
];
const CONTENT_OF = {
  action: ['arguments', 'effect', 'target'],
  message: ['role', 'parts'],
  decision: ['verdict', 'rule_id'],
};

function contentOf({ payload }: LogEvent): string {
  const inside = Object.entries(CONTENT_OF).map(([part, names]) =>
    names.map((name) => own(bag(own(payload, part)), name) ?? null),
  );
  return JSON.stringify([CONTENT.map((name) => own(payload, name) ?? null), inside]);
}

/** The ends of a task; every replay makes its own. */
const END = /^task\.(completed|failed|canceled)$/;
/** Of a replay itself: its beginning, its end and its proof. */
const OWN = /^(replay\.(started|completed)|receipt\.issued)$/;
const REPEATED = 'replay.event_replayed';
/** Ids that a gateway makes: a question of a replay has one of its own. */
const MADE_HERE = /\b[a-z]+_(?:[0-9A-HJKMNP-TV-Z]{26}\b|replay_[0-9a-f]{26}[\w.]*)/g;
/** The conversation is not changed by a replay, so the message that gave the work its input stands in the source alone. */
const IN_CONVERSATION = 'session.message_appended';

/**
 * The events of both, in pairs. An event of a replay names the one it repeats; those that begin and end the task are its own. What a replay
 * says it repeated without writing it again is the same.
 */
export function pairUp(left: readonly LogEvent[], right: readonly LogEvent[], ids: readonly string[]) {
  const keyOf = ({ id, event, replay }: LogEvent) =>
    replay?.original_event_id ?? (END.test(event) ? 'end' : /^task\.(submitted|started)$/.test(event) ? event : id);
  // The summary says what the content does not: how a task ended, which file was made.
  const content = (event: LogEvent) => {
    const summary = ids.reduce((text, id) => text.replaceAll(id, ''), toRow(event).text).replace(MADE_HERE, '');
    return `${event.event} ${summary} ${contentOf(event)}`;
  };
  const others = new Map(right.filter(({ event }) => !OWN.test(event)).map((event) => [keyOf(event), event]));
  const began = left.findIndex(({ event }) => event === 'task.submitted');
  const pairs = left.flatMap((one, at) => {
    const found = others.get(one.id) ?? others.get(keyOf(one));
    if (OWN.test(one.event) || (!found && one.event === IN_CONVERSATION && at < began)) return [];
    if (found) others.delete(keyOf(found));
    const same = found !== undefined && (found.event === REPEATED || content(one) === content(found));
    return [{ left: one as LogEvent | undefined, right: found, same }];
  });
  return [...pairs, ...[...others.values()].map((other) => ({ left: undefined, right: other, same: false }))];
}
