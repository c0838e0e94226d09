/** Room for connections: counted in all and by address, and given by those that have been silent longest. */
import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { expect, test, vi } from 'vitest';
import { createConnectionLimit } from '../../../src/transport/http/connection-limit.ts';

function socketFrom(remoteAddress: string): Socket & { destroyed: boolean } {
  const socket = Object.assign(new EventEmitter(), { remoteAddress, destroyed: false, destroy: vi.fn() });
  socket.destroy.mockImplementation(() => {
    socket.destroyed = true;
    socket.emit('close');
  });
  return socket as unknown as Socket & { destroyed: boolean };
}

test('one too many is refused while nobody has been silent for long', () => {
  const limit = createConnectionLimit({ most: 2 });
  expect([1, 2, 3].map(() => limit.admits(socketFrom('127.0.0.1')))).toEqual([true, true, false]);
});

test('the longest silent one makes room, one at work does not', () => {
  const limit = createConnectionLimit({ most: 2, silentMs: 0 });
  const [working, silent, next, last] = [1, 2, 3, 4].map(() => socketFrom('127.0.0.1')) as [
    Socket,
    Socket,
    Socket,
    Socket,
  ];
  limit.admits(working);
  limit.admits(silent);
  limit.busy(working);
  expect(limit.admits(next)).toBe(true);
  expect([working.destroyed, silent.destroyed]).toEqual([false, true]);
  limit.busy(next);
  expect(limit.admits(last)).toBe(false);
  limit.silent(next);
  expect(limit.admits(last)).toBe(true);
  expect(next.destroyed).toBe(true);
});

test('one address elsewhere has its own limit, this machine has not, and closing gives the room back', () => {
  const limit = createConnectionLimit({ most: 100, mostEach: 2 });
  const theirs = [1, 2].map(() => socketFrom('::ffff:192.0.2.7'));
  expect(theirs.map((socket) => limit.admits(socket))).toEqual([true, true]);
  expect(limit.admits(socketFrom('192.0.2.7'))).toBe(false);
  expect(limit.admits(socketFrom('192.0.2.8'))).toBe(true);
  expect([1, 2, 3].map(() => limit.admits(socketFrom('::1')))).toEqual([true, true, true]);
  theirs[0]?.destroy();
  expect(limit.admits(socketFrom('192.0.2.7'))).toBe(true);
});
