/**
 * A Unix stream socket only its owner may open. A stale socket at its path is removed if nothing accepts connections on
 * it; any other file there is left alone and refused. Knows no protocol.
 */
import { chmod, lstat, mkdir, unlink } from 'node:fs/promises';
import { createConnection, createServer, type Socket } from 'node:net';
import { dirname } from 'node:path';
import { Fault } from '../../model/faults.ts';
import type { Closable } from '../../ports/index.ts';

export async function listenUnix(path: string, connected: (socket: Socket) => void): Promise<Closable> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await clear(path);
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
    socket.on('error', () => socket.destroy());
    connected(socket);
  });
  const before = process.umask(0o177);
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(path, resolve);
    });
  } finally {
    process.umask(before);
  }
  await chmod(path, 0o600);
  return {
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}

async function clear(path: string): Promise<void> {
  const there = await lstat(path).catch(() => undefined);
  if (!there) return;
  if (!there.isSocket()) throw new Fault('conflict', `${path} is there already and is not a socket`);
  if (await answers(path)) throw new Fault('conflict', `another process listens at ${path} already`);
  await unlink(path);
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createConnection(path);
    probe.once('connect', () => {
      probe.destroy();
      resolve(true);
    });
    probe.once('error', () => resolve(false));
  });
}
