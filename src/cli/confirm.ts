/**
 * A yes-or-no prompt at this terminal. Reads lines, typed or piped. Only y and n are answers, and the prompt can be
 * withdrawn when the question was answered elsewhere.
 */
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';

/** `gone`: standard input has ended. `withdrawn`: the answer is no longer needed. */
export type Confirmation = 'yes' | 'no' | 'gone' | 'withdrawn' | 'interrupted';

export interface Terminal {
  readonly input: Readable & { readonly isTTY?: boolean; ref?(): unknown; unref?(): unknown };
  readonly output: Writable;
}

export function askYesOrNo({ input, output }: Terminal, prompt: string, signal: AbortSignal): Promise<Confirmation> {
  input.ref?.();
  const lines = createInterface({ input, output, terminal: input.isTTY === true });
  return new Promise((resolve) => {
    const end = (said: Confirmation) => {
      signal.removeEventListener('abort', withdraw);
      resolve(said); // the first result counts: `close` also reports `gone`, which comes too late
      lines.close();
      // An open pipe must not keep the process alive: there is nothing more to ask.
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
