/** Heads in an append-only file, one per line; each is synced to disk before it is acknowledged. */
import { mkdir, open, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isLogHead, type LogHead } from '../receipt/seal/log-head.ts';

export async function appendHead(path: string, head: LogHead): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const file = await open(path, 'a', 0o600);
  try {
    await file.appendFile(`${JSON.stringify(head)}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
}

/**
 * Oldest first. A last line cut off by a crash was never acknowledged and is ignored; any other line that is no head is
 * an error.
 */
export async function readHeads(path: string): Promise<readonly LogHead[]> {
  const text = await readFile(path, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOENT') return '';
    throw cause;
  });
  const lines = text.split('\n');
  const cut = lines.pop();
  return [...lines.filter((line) => line !== ''), ...(cut && headIn(cut) ? [cut] : [])].map((line, at) => {
    const head = headIn(line);
    if (!head) throw new Error(`line ${at + 1} of ${path} is not the head of a log`);
    return head;
  });
}

function headIn(line: string): LogHead | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isLogHead(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
