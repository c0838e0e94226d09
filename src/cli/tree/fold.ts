/** What stands below the options in a command's help, folded to the width of whoever reads it. Indented lines are to be typed, and stay. */
import { folded as foldedLine } from '../folding.ts';

/** Lines longer than this are hard to read on any screen. */
const WIDEST = 100;
/** As wide as a terminal has always been, where nobody says how wide it is. */
const USUAL = 80;

export function helpWidth(columns = process.stdout.isTTY ? process.stdout.columns : undefined): number {
  return Math.min(columns || USUAL, WIDEST);
}

export function folded(text: string): () => string {
  return () => `\n${fold(text, helpWidth())}`;
}

/** Paragraphs are parted by an empty line. */
export function fold(text: string, width: number): string {
  return text
    .split('\n\n')
    .map((part) => (/^ {2}/.test(part) ? part : foldedLine(part.replace(/\s+/g, ' '), width)))
    .join('\n\n');
}
