/** A TCP proxy before the database that drops, delays and resets connections, and can cut one in the middle of a commit. */
import { connect, createServer, type Socket } from 'node:net';

export interface Proxy {
  readonly port: number;
  /** Resets all connections; new ones are taken. */
  reset(): void;
  /** Nothing passes any more, in either direction, and no connection ends: as when a cable is pulled. */
  hold(): void;
  /** What was held passes on. */
  resume(): void;
  /** The next answer that matches is not passed on, and its connection is reset. Resolves when that happened. */
  cutBefore(answer: (bytes: Buffer) => boolean): Promise<void>;
  /** The next request that matches does not reach the database before `release`; its connection is reset towards the client at once. */
  delay(request: (bytes: Buffer) => boolean): { readonly cut: Promise<void>; release(): void };
  close(): Promise<void>;
}

/** `to`: the port of the database, asked for with each connection where it can change. */
export async function startProxy(to: number | (() => number)): Promise<Proxy> {
  const pairs = new Set<{ readonly client: Socket; readonly server: Socket }>();
  let held = false;
  let cut: { readonly matches: (bytes: Buffer) => boolean; readonly done: () => void } | undefined;
  let late:
    | { readonly matches: (bytes: Buffer) => boolean; readonly done: () => void; bytes?: Buffer; to?: Socket }
    | undefined;

  const proxy = createServer((client) => {
    const server = connect(typeof to === 'number' ? to : to(), '127.0.0.1');
    const pair = { client, server };
    pairs.add(pair);
    let detached = false;
    const end = (): void => {
      if (detached) return;
      pairs.delete(pair);
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) {
      socket.on('error', end);
      socket.on('close', end);
      if (held) socket.pause();
    }
    client.on('data', (bytes) => {
      if (late?.matches(bytes) && !late.bytes) {
        late.bytes = bytes;
        late.to = server;
        detached = true;
        pairs.delete(pair);
        client.resetAndDestroy();
        late.done();
        return;
      }
      server.write(bytes);
    });
    server.on('data', (bytes) => {
      if (cut?.matches(bytes)) {
        const { done } = cut;
        cut = undefined;
        client.resetAndDestroy();
        server.destroy();
        done();
        return;
      }
      client.write(bytes);
    });
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const { port } = proxy.address() as { port: number };
  const reset = (): void => {
    for (const { client, server } of [...pairs]) {
      client.resetAndDestroy();
      server.destroy();
    }
  };
  return {
    port,
    reset,
    hold() {
      held = true;
      for (const { client, server } of pairs) {
        client.pause();
        server.pause();
      }
    },
    resume() {
      held = false;
      for (const { client, server } of pairs) {
        client.resume();
        server.resume();
      }
    },
    cutBefore: (matches) =>
      new Promise((resolve) => {
        cut = { matches, done: resolve };
      }),
    delay(matches) {
      let done = (): void => {};
      const happened = new Promise<void>((resolve) => {
        done = resolve;
      });
      const own: NonNullable<typeof late> = { matches, done };
      late = own;
      return {
        cut: happened,
        release() {
          late = undefined;
          own.to?.write(own.bytes!);
          own.to?.end();
        },
      };
    },
    async close() {
      reset();
      await new Promise((resolve) => proxy.close(resolve));
    },
  };
}
