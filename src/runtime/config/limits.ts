/** The `limits` section: how much one gateway holds at once. Absent members get defaults that fit this machine. */
import { type Where, wrong } from './document.ts';
import type { ConfigFile } from './shape.ts';
import { bytesOf } from './store.ts';

export interface Limits {
  /** Connections open at once at the port of the doors, and from one non-loopback address. */
  readonly connections?: number;
  readonly connectionsPerAddress?: number;
  /** Programs running at once: agents, tool servers, harnesses. */
  readonly children?: number;
  /** Characters of one result. */
  readonly resultSize?: number;
}

/** Redacting and serializing a larger result would block the event loop for every other request. */
const LARGEST_RESULT = 64 * 1024 ** 2;

export function limitsOf(limits: ConfigFile['limits'], where: Where): Limits {
  const { connections, connections_per_address, children, result } = limits ?? {};
  const resultSize = result === undefined ? undefined : bytesOf(result);
  if (result !== undefined && (resultSize === undefined || resultSize > LARGEST_RESULT))
    throw wrong(where(['limits', 'result']), `limits.result: ${result} is no size for a result; write 1MB to 64MB`);
  return {
    ...(connections !== undefined && { connections }),
    ...(connections_per_address !== undefined && { connectionsPerAddress: connections_per_address }),
    ...(children !== undefined && { children }),
    ...(resultSize !== undefined && { resultSize }),
  };
}
