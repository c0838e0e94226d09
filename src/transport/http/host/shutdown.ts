/** How a port ends: it says that it leaves, accepts no more connections, lets open requests finish for a while, then ends them. */
import type { Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import type { InFlightMap } from '../../in-flight-map.ts';
import type { GatewayResponse } from '../response.ts';

export interface ShutdownDeps {
  readonly server: Pick<Server, 'listening' | 'closeIdleConnections' | 'closeAllConnections'> & {
    close(ended: () => void): unknown;
  };
  readonly open: InFlightMap<string, GatewayResponse>;
  readonly upgraded: ReadonlySet<Duplex>;
  readonly graceMs: number;
  readonly leaveMs: number;
}

export interface Shutdown {
  /** Responses say that the connection is about to close. */
  readonly leaving: boolean;
  /** New requests are refused. */
  readonly refusing: boolean;
  drain(): Promise<void>;
  close(): Promise<void>;
}

export function createShutdown({ server, open, upgraded, graceMs, leaveMs }: ShutdownDeps): Shutdown {
  let leaving = false;
  let refusing = false;
  let ended: Promise<void> | undefined;

  function acceptNoMore(): Promise<void> {
    ended ??= new Promise<void>((resolve) => server.close(() => resolve()));
    return ended;
  }

  return {
    get leaving() {
      return leaving;
    },
    get refusing() {
      return refusing;
    },
    async drain() {
      if (!server.listening || leaving) return;
      leaving = true;
      await pause(leaveMs);
      void acceptNoMore();
      server.closeIdleConnections();
      await until(() => open.all().every(({ streams }) => streams), graceMs);
    },
    async close() {
      if (!server.listening && !ended) return;
      leaving = true;
      refusing = true;
      const closing = acceptNoMore();
      server.closeIdleConnections();
      const over = () => open.size === 0 && upgraded.size === 0;
      await until(over, graceMs);
      for (const response of open.all()) response.headersSent ? response.end() : response.destroy();
      for (const socket of upgraded) socket.end();
      server.closeIdleConnections();
      await until(over, Math.min(graceMs, 500));
      for (const socket of upgraded) socket.destroy();
      server.closeAllConnections();
      await closing;
    },
  };
}

async function until(over: () => boolean, ms: number): Promise<void> {
  const deadline = Date.now() + ms;
  while (!over() && Date.now() < deadline) await pause(10);
}
