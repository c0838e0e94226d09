/**
 * The real program in a process of its own: started, found by what it prints, and killed by its own pid without a word
 * of warning. Whatever is still alive when this process ends is killed with it.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { Broken } from './broken.ts';

export interface GatewayLocation {
  /** The built program, `dist/src/main.js`. */
  readonly program: string;
  readonly dataDir: string;
  readonly config: string;
  /** One line per effect. */
  readonly journal: string;
  /** What it logs, kept over restarts. */
  readonly errorLog: string;
}

export interface GatewayProcess {
  readonly pid: number;
  /** Where it listens and its token; undefined when it died before it could say. */
  readonly ready: Promise<Ready | undefined>;
  /** SIGKILL, now. Resolves when nothing of it is left. */
  kill(): Promise<void>;
  /** The exit code if it ended by itself. */
  readonly ended: Promise<number | null>;
}
export interface Ready {
  readonly url: string;
  readonly token: string;
  /** From start to listening. */
  readonly ms: number;
}

const LISTENS = /^tollbridge listens on (http:\/\/\S+) {2}\(token (\S+)\)$/;
/** Three lines: where it listens, where the log is, what waits for an answer. */
const LAST_LINE = /^Approvals: .* approvals {2}\(.*\)$/;

const alive = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of alive) child.kill('SIGKILL');
});

export function startGateway({ program, dataDir, config, journal, errorLog }: GatewayLocation): GatewayProcess {
  const args = ['serve', '--port', '0', '--config', config, '--data', dataDir, '--journal', journal];
  const begun = performance.now();
  const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  alive.add(child);
  const log = createWriteStream(errorLog, { flags: 'a' });
  log.write('\n'); // the one before may have been killed in the middle of a line
  child.stderr.pipe(log);
  const ended = new Promise<number | null>((resolve) => {
    child.once('close', (code) => {
      alive.delete(child);
      resolve(code);
    });
  });
  const ready = new Promise<Ready | undefined>((resolve) => {
    let found: { url: string; token: string } | undefined;
    createInterface({ input: child.stdout }).on('line', (line) => {
      const [, url, token] = LISTENS.exec(line) ?? [];
      if (url && token) found = { url, token };
      if (found && LAST_LINE.test(line)) resolve({ ...found, ms: performance.now() - begun });
    });
    ended.then(() => resolve(undefined));
  });
  return {
    pid: child.pid ?? 0,
    ready,
    ended,
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/** Whatever it logs as an error, or cries out before it can log, is a promise it could not keep. */
export async function noErrors(file: string): Promise<void> {
  for (const line of (await readFile(file, 'utf8')).split('\n')) {
    const [, level] = /^\{"level":(\d+)/.exec(line) ?? [];
    if (line !== '' && !(Number(level) < ERROR)) throw new Broken('the gateway has no trouble of its own', line);
  }
}
const ERROR = 50;
