/**
 * The text below the options in a command's help, folded to the terminal's width. Indented lines are commands, and stay
 * as they are.
 */
import { folded as foldedLine } from './folding.ts';

/** Lines longer than this are hard to read on any screen. */
const WIDEST = 100;
/** Where the width of the terminal is unknown. */
const USUAL = 80;

export function helpWidth(columns = process.stdout.isTTY ? process.stdout.columns : undefined): number {
  return Math.min(columns || USUAL, WIDEST);
}

export function folded(text: string): () => string {
  return () => `\n${fold(text, helpWidth())}`;
}

/** Paragraphs are separated by an empty line. */
export function fold(text: string, width: number): string {
  return text
    .split('\n\n')
    .map((part) => (/^ {2}/.test(part) ? part : foldedLine(part.replace(/\s+/g, ' '), width)))
    .join('\n\n');
}
