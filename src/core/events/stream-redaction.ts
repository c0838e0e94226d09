/**
 * Redacts text that is streamed in pieces, so that a secret cut in two does not pass as two halves. A piece whose end may begin a
 * known secret waits for the next piece, or for the end of its message; everything else is passed on at once. Only known values can
 * be matched this way: a shape that merely looks like a secret is recognised only at its end.
 */
import type { Fact } from '../../model/commands.ts';
import { mask } from '../redaction/redact-deep.ts';

/** Finds known secrets in pieces of text. */
export interface Beginnings {
  /** The start of a known secret that the text ends in the middle of; undefined when there is none. */
  brokenOff(text: string): number | undefined;
  /** The known secrets in the text. */
  knownIn(text: string): readonly { readonly start: number; readonly end: number }[];
}

export interface Piece {
  readonly fact: Fact;
  /** Part of a secret was removed here; the log cannot detect that by itself. */
  readonly cut: boolean;
}

export interface Streamed {
  /** The pieces that may be written now. Another message, or the complete one, releases what was held back before it. */
  take(fact: Fact): readonly Piece[];
  /** The text still held back, when nothing follows it. */
  rest(): readonly Piece[];
}

const DELTA = 'vendor.tollbridge.message_delta';
const WHOLE = new Set(['agent.message', 'user.message']);
/** So few characters of a secret reveal nothing, and ordinary words often begin with them. */
const REVEALING_CHARS = 3;

export function createStreamed({ brokenOff, knownIn }: Beginnings): Streamed {
  /** The message being streamed: the end of the released text, and the held-back text. */
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
    // A complete secret may end like the beginning of another, or of itself.
    const from = Math.max(broken ?? whole.length, shown.length, found.at(-1)?.end ?? 0);
    // The log redacts a secret that lies wholly in this piece.
    const across = found.filter(({ start, end }) => start < shown.length && end > shown.length);
    const released = without(whole, shown.length, from, across);
    open = { id, shown: whole.slice(Math.max(0, from - REVEALING_CHARS), from), kept: whole.slice(from), fact };
    if (released === text) return followedBy(before, { fact, cut: false });
    return released === '' ? before : followedBy(before, { fact: withText(fact, released), cut: across.length > 0 });
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

/** `ext` is dropped because it holds the text with its original cut. */
function withText({ ext: _, ...fact }: Fact, text: string): Fact {
  return { ...fact, payload: { ...fact.payload, text } };
}
