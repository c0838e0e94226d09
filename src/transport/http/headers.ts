/** How often a header was sent. Node joins two of a name, or drops the second; `headers` no longer shows it. */
import type { IncomingMessage } from 'node:http';

/** Reads the raw headers: building `headersDistinct` for one of them is measurable in every request. */
export function timesSent({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>, name: string): number {
  let times = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const header = rawHeaders[at] as string;
    if (header.length === name.length && header.toLowerCase() === name) times += 1;
  }
  return times;
}
