/**
 * Text that comes in pieces, so that a secret cut in two does not pass as two halves. A piece that ends like the beginning
 * of a value that must never be written waits for the next one, or for the end of its message; everything else goes on at
 * once. Only values that are known can be waited for: a shape that merely looks like a secret is known by its end.
 */
import type { Fact } from '../model/commands.ts';
import { mask } from './redact-deep.ts';

/** What the pieces of texts are looked through with. */
export interface Beginnings {
  /** Where a known secret begins that this text breaks off in; undefined when it does not. */
  brokenOff(text: string): number | undefined;
  /** Where known secrets stand in it. */
  knownIn(text: string): readonly { readonly start: number; readonly end: number }[];
}

export interface Piece {
  readonly fact: Fact;
  /** Part of a secret was taken out here; the log cannot see it by itself. */
  readonly cut: boolean;
}

export interface Streamed {
  /** What may be written now. Another message, or the whole of this one, lets go of what was kept back before it. */
  take(fact: Fact): readonly Piece[];
  /** What is still kept back; nothing follows it. */
  rest(): readonly Piece[];
}

const DELTA = 'vendor.tollbridge.message_delta';
const WHOLE = new Set(['agent.message', 'user.message']);
/** So little of a secret gives nothing away, and ordinary words begin like that all the time. */
const GIVEN_AWAY = 3;

export function createStreamed({ brokenOff, knownIn }: Beginnings): Streamed {
  /** The message being written: the end of what was let go, and what was not. */
  let open: { readonly id: unknown; readonly shown: string; readonly kept: string; readonly fact: Fact } | undefined;

  function rest(): readonly Piece[] {
    const left = open;
    open = undefined;
    return left?.kept ? [{ fact: withText(left.fact, left.kept), cut: false }] : NOTHING;
  }

  function take(fact: Fact): readonly Piece[] {
    const { text, message_id: id = null } = fact.payload;
    if (fact.event !== DELTA || typeof text !== 'string') {
      return followedBy(WHOLE.has(fact.event) ? rest() : NOTHING, { fact, cut: false });
    }
    const before = open && open.id === id ? NOTHING : rest();
    const { shown, kept } = open ?? { shown: '', kept: '' };
    const whole = shown + kept + text;
    const broken = brokenOff(whole);
    const found = shown || broken !== undefined ? knownIn(whole) : [];
    // A whole one may end like the beginning of another, or of itself.
    const from = Math.max(broken ?? whole.length, shown.length, found.at(-1)?.end ?? 0);
    // One that stands here whole is the log's to take out.
    const across = found.filter(({ start, end }) => start < shown.length && end > shown.length);
    const said = without(whole, shown.length, from, across);
    open = { id, shown: whole.slice(Math.max(0, from - GIVEN_AWAY), from), kept: whole.slice(from), fact };
    if (said === text) return followedBy(before, { fact, cut: false });
    return said === '' ? before : followedBy(before, { fact: withText(fact, said), cut: across.length > 0 });
  }

  return { take, rest };
}

const NOTHING: readonly Piece[] = [];

function followedBy(before: readonly Piece[], piece: Piece): readonly Piece[] {
  return before.length === 0 ? [piece] : [...before, piece];
}

function without(text: string, from: number, to: number, spans: ReturnType<Beginnings['knownIn']>): string {
  let out = '';
  let at = from;
  for (const { start, end } of spans) {
    if (end <= at) continue;
    out += text.slice(at, Math.max(at, start)) + mask('known secret');
    at = end;
  }
  return out + text.slice(at, to);
}

/** What the wire said beside it holds the text as it was cut. */
function withText({ ext: _, ...fact }: Fact, text: string): Fact {
  return { ...fact, payload: { ...fact.payload, text } };
}
