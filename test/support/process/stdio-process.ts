/** A command that speaks a protocol on its standard output, started as its client starts it; the test plays that client. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { createEnd, type End } from '../wire/line-end.ts';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const BUILT = process.env.TOLLBRIDGE_PROGRAM ?? here('../../../dist/src/main.js');
/** Built before the tests run; otherwise as it is written, which starts more slowly. */
export const PROGRAM = existsSync(BUILT) ? [BUILT] : ['--import', 'tsx', here('../../../src/main.ts')];

interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
}
export interface Spoken {
  readonly end: End;
  readonly child: ChildProcessWithoutNullStreams;
  /** What it has said beside the protocol so far. */
  readonly stderr: () => string;
  readonly exited: Promise<Exit>;
  /** Once everything is received that it, or whatever it started, had to say. */
  readonly silent: Promise<Exit>;
}

/** Starts the command it is given on its own streams, and ends with it. */
const CLIENT = `
  const { spawn } = require('node:child_process');
  const command = spawn(process.execPath, process.argv.slice(1), { stdio: 'inherit' });
  command.once('exit', (code) => process.exit(code ?? 1));
`;

export function startSpeaking(
  words: readonly string[],
  {
    env = {},
    ownClient = false,
  }: {
    readonly env?: Readonly<Record<string, string>>;
    /**
     * A process of its own starts the command, as an MCP client does. That process counts as the agent; without it the test
     * would, and no command that the test runs could answer for a person. It is stopped by the end of its input.
     */
    readonly ownClient?: boolean;
  } = {},
): Spoken {
  const client = ownClient ? ['-e', CLIENT, '--'] : [];
  const child = spawn(process.execPath, [...client, ...PROGRAM, ...words], {
    stdio: 'pipe',
    env: { ...process.env, ...env },
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  child.stdin.on('error', () => {});
  return {
    end: createEnd(child.stdout, child.stdin),
    child,
    stderr: () => said,
    exited: once(child, 'exit').then(([code, signal]) => ({ code, signal })),
    silent: once(child, 'close').then(([code, signal]) => ({ code, signal })),
  };
}

/** A place for a log, and a configuration beside it; both are gone afterwards. */
export async function aGateway(yaml: string): Promise<{ readonly data: string; readonly config: string }> {
  const dir = await mkdtemp(join(tmpdir(), 'tb-speaking-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true, maxRetries: 3 }));
  const data = join(dir, 'data');
  const config = join(dir, 'tollbridge.yaml');
  await mkdir(data);
  await writeFile(config, yaml);
  return { data, config };
}
