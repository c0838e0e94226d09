/** Backpressure for streams that the SDK writes. */

export interface StreamWriter {
  readonly writableNeedDrain?: boolean;
  once(event: string, listener: () => void): unknown;
  off(event: string, listener: () => void): unknown;
}

/**
 * Resolves when the writer has room. `gone` is the event that says the reader has disconnected; `late` means that the reader
 * read nothing for too long.
 */
export async function roomIn(line: StreamWriter, gone: string, stallMs: number): Promise<'room' | 'gone' | 'late'> {
  if (!line.writableNeedDrain) return 'room';
  return await new Promise((resolve) => {
    const settle = (how: 'room' | 'gone' | 'late') => {
      clearTimeout(timer);
      line.off('drain', drained);
      line.off(gone, left);
      resolve(how);
    };
    const drained = () => settle('room');
    const left = () => settle('gone');
    const timer = setTimeout(() => settle('late'), stallMs);
    line.once('drain', drained);
    line.once(gone, left);
  });
}
