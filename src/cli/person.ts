/**
 * A person at this terminal, asked one thing. Lines are lines, whether they are typed or piped. Nothing is taken for a
 * yes or a no that is not one, and the question can be taken back when it was answered elsewhere.
 */
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';

/** `gone`: nobody is at the other end. `withdrawn`: nobody needs to know any more. */
export type Said = 'yes' | 'no' | 'gone' | 'withdrawn' | 'interrupted';

export interface Terminal {
  readonly input: Readable & { readonly isTTY?: boolean; ref?(): unknown; unref?(): unknown };
  readonly output: Writable;
}

export function askYesOrNo({ input, output }: Terminal, prompt: string, signal: AbortSignal): Promise<Said> {
  input.ref?.();
  const lines = createInterface({ input, output, terminal: input.isTTY === true });
  return new Promise((resolve) => {
    const end = (said: Said) => {
      signal.removeEventListener('abort', withdraw);
      resolve(said); // the first word counts: closing is told as being gone, and comes too late
      lines.close();
      // A pipe that somebody holds open must not hold us: there is nothing more to ask.
      input.unref?.();
    };
    const withdraw = () => end('withdrawn');
    if (signal.aborted) return withdraw();
    signal.addEventListener('abort', withdraw, { once: true });
    lines.on('line', (line) => {
      const word = line.trim().toLowerCase();
      if (word === 'y' || word === 'yes') return end('yes');
      if (word === 'n' || word === 'no') return end('no');
      output.write(`Please answer y or n.\n${prompt}`);
    });
    // In a terminal Ctrl-C arrives here as a key, and not as a signal.
    lines.on('SIGINT', () => end('interrupted'));
    lines.on('close', () => end('gone'));
    output.write(prompt);
  });
}
