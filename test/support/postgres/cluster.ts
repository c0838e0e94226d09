/** A PostgreSQL server of a test's own, to be stopped, crashed and failed over to a standby while gateways work on it. */
import { type ChildProcess, fork } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Done, Order } from './cluster-process.ts';

export interface Cluster {
  /** Of the primary. It changes when a standby takes its place. */
  port(): number;
  stop(how: 'fast' | 'immediate'): Promise<void>;
  start(): Promise<void>;
  /** Resolves once commits wait for it. */
  addStandby(): Promise<void>;
  failOver(): Promise<void>;
  close(): Promise<void>;
}

export interface ClusterOptions {
  /** Of the servers, as `name=value`. */
  readonly settings?: readonly string[];
  /** A directory with cert.pem and key.pem, for TLS. */
  readonly certificate?: string;
}

export async function openCluster({ settings = [], certificate = '' }: ClusterOptions = {}): Promise<Cluster> {
  const dir = mkdtempSync(join(tmpdir(), 'tollbridge-cluster-'));
  const main = fileURLToPath(new URL('./cluster-process.ts', import.meta.url));
  const child: ChildProcess = fork(main, [dir, certificate, ...settings], {
    execArgv: ['--import', 'tsx'],
    silent: true,
  });
  let port = 0;
  let last: Promise<unknown> = answer();

  function answer(): Promise<void> {
    return new Promise((resolve, reject) => {
      const gone = () => reject(new Error('the process of the servers has ended'));
      child.once('exit', gone);
      child.once('message', (done: Done) => {
        child.off('exit', gone);
        if ('failed' in done) return reject(new Error(done.failed));
        port = done.port;
        resolve();
      });
    });
  }
  /** One at a time. */
  function order(wanted: Order): Promise<void> {
    const done = last.then(() => {
      child.send(wanted);
      return answer();
    });
    last = done.catch(() => undefined);
    return done;
  }

  await order({ do: 'start' });
  return {
    port: () => port,
    stop: (how) => order({ do: 'stop', how }),
    start: () => order({ do: 'start' }),
    addStandby: () => order({ do: 'add standby' }),
    failOver: () => order({ do: 'fail over' }),
    async close() {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.disconnect();
      await ended;
    },
  };
}
