/** HTTP as bytes, for requests no honest client would send. */
import { connect } from 'node:net';

export interface RawAnswer {
  readonly status: number;
  readonly head: string;
  readonly body: string;
}

/** Sends the bytes, waits for the peer to close or for a whole answer, and reads what came. */
export function rawHttp(url: string, bytes: string, { settleMs = 300 } = {}): Promise<RawAnswer> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => socket.write(bytes));
    let text = '';
    let timer: NodeJS.Timeout | undefined;
    const done = () => {
      clearTimeout(timer);
      socket.destroy();
      const [head = '', ...rest] = text.split('\r\n\r\n');
      resolve({ status: Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 0), head, body: rest.join('\r\n\r\n') });
    };
    socket.on('data', (chunk) => {
      text += chunk;
      clearTimeout(timer);
      timer = setTimeout(done, settleMs);
    });
    socket.on('end', done);
    socket.on('close', done);
    socket.on('error', (cause) => (text === '' ? reject(cause) : done()));
  });
}
