/** Peers in a process of their own, the same for both contenders: they post, and read the answer or the stream to its end. */
import { Agent, request } from 'node:http';

export interface A2aWanted {
  readonly port: number;
  readonly path: string;
  readonly token: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly callers: number;
  readonly requests: number;
}
export interface A2aReport {
  readonly ms: number;
  /** Answers that were not 200, or not of work that was completed. */
  readonly bad: number;
  /** Events on streams, all together. */
  readonly events: number;
}

process.on('message', (wanted: A2aWanted) => {
  void load(wanted).then((report) => process.send?.(report));
});

async function load({ port, path, token, body, headers: more, callers, requests }: A2aWanted): Promise<A2aReport> {
  const agent = new Agent({ keepAlive: true, maxSockets: callers });
  let left = requests;
  let bad = 0;
  let events = 0;
  const headers = {
    'content-type': 'application/json',
    ...more,
    authorization: `Bearer ${token}`,
    'content-length': Buffer.byteLength(body),
  };
  const once = () =>
    new Promise<void>((resolve, reject) => {
      const sent = request({ host: '127.0.0.1', port, path, method: 'POST', agent, headers }, (answer) => {
        let rest = '';
        let last = '';
        answer.setEncoding('latin1');
        answer.on('data', (chunk: string) => {
          rest += chunk;
          const parts = rest.split('\n\n');
          rest = parts.pop() ?? '';
          last = parts.at(-1) ?? last;
          events += parts.length;
        });
        answer.on('end', () => {
          if (answer.statusCode !== 200 || !`${last}${rest}`.includes('TASK_STATE_COMPLETED')) bad += 1;
          resolve();
        });
        answer.on('error', reject);
      });
      sent.on('error', reject);
      sent.end(body);
    });
  const caller = async () => {
    while (left > 0) {
      left -= 1;
      await once();
    }
  };
  const began = performance.now();
  await Promise.all(Array.from({ length: callers }, caller));
  const ms = performance.now() - began;
  agent.destroy();
  return { ms, bad, events };
}
