/** The output of a command: its end, up to a limit, for the agent; its beginning, up to another limit, for the log. */
export interface Output {
  add(chunk: Uint8Array): void;
  /** The last bytes within the limit, cut where a character begins. */
  text(): string;
  readonly truncated: boolean;
  readonly size: number;
  kept(): Uint8Array;
}

export function createOutput(limit: number, keep: number): Output {
  let tail = Buffer.alloc(0);
  const head: Buffer[] = [];
  let held = 0;
  let size = 0;
  return {
    add(chunk) {
      const bytes = Buffer.from(chunk);
      size += bytes.length;
      if (held < keep) {
        const part = bytes.subarray(0, keep - held);
        head.push(part);
        held += part.length;
      }
      tail = Buffer.concat([tail, bytes]);
      // Trimmed now and then, not with every chunk.
      if (tail.length > limit * 2 + 4096) tail = Buffer.from(tail.subarray(tail.length - limit));
    },
    text() {
      let from = Math.max(0, tail.length - limit);
      while (from > 0 && from < tail.length && ((tail[from] as number) & 0xc0) === 0x80) from += 1;
      return tail.subarray(from).toString('utf8');
    },
    get truncated() {
      return size > limit;
    },
    get size() {
      return size;
    },
    kept: () => Buffer.concat(head, held),
  };
}
