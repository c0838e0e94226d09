/** A writer at its reader's pace, where the SDK does the writing. */

export interface Line {
  readonly writableNeedDrain?: boolean;
  once(event: string, heard: () => void): unknown;
  off(event: string, heard: () => void): unknown;
}

/** Resolves when there is room for more. `gone`: the event that says that nobody reads; `late`: nobody did for too long. */
export async function roomIn(line: Line, gone: string, stallMs: number): Promise<'room' | 'gone' | 'late'> {
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
