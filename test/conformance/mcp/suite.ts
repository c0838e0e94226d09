/** The official suite, run as the program it is, and what it found: one verdict per scenario. */
import { spawn } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { tool } from './tools.ts';

export const REVISIONS = ['2025-11-25', '2026-07-28'] as const;
export type Revision = (typeof REVISIONS)[number];

export interface Verdict {
  readonly scenario: string;
  readonly passed: boolean;
  /** Counts towards conformance with the revision. */
  readonly scored: boolean;
  readonly checks: number;
  /** What went wrong, in the suite's words. */
  readonly reasons: readonly string[];
}
export type Target = { readonly server: string } | { readonly client: string };
type Tell = (line: string) => void;

/** Runs everything the revision asks for, or one scenario of it. */
export async function runOfficial(
  target: Target,
  revision: Revision,
  tell: Tell,
  scenario?: string,
): Promise<readonly Verdict[]> {
  const [program, ...first] = await tool('conformance', tell);
  const results = await mkdtemp(join(tmpdir(), 'tb-conformance-'));
  const what = 'server' in target ? ['server', '--url', target.server] : ['client', '--command', target.client];
  const which = scenario ? ['--scenario', scenario, '--spec-version', revision] : ['--requirements', revision];
  try {
    const printed = await output(program as string, [...first, ...what, ...which, '-o', results]);
    return await verdictsIn(printed, results, scenario);
  } finally {
    await rm(results, { recursive: true, force: true });
  }
}

function output(program: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    let text = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
    }
    child.once('error', reject);
    child.once('close', () => resolve(text));
  });
}

/** One line of its summary. */
const LINE = /^\s*([✓✗])\s+([a-z0-9_/.-]+): (\d+) passed, (\d+) failed/iu;

async function verdictsIn(printed: string, results: string, scenario?: string): Promise<readonly Verdict[]> {
  const unscored = new Set(
    [...(printed.split('Not scored for')[1] ?? '').matchAll(/^\s+[✓✗]\s+([a-z0-9_/.-]+) \(/gimu)].map(
      ([, name]) => name,
    ),
  );
  const folders = await readdir(results, { recursive: true });
  const verdicts: Verdict[] = [];
  for (const line of printed.split('\n')) {
    const [, sign, name = '', passed, failed] = LINE.exec(line) ?? [];
    if (sign === undefined) continue;
    const file = folders.find((path) => path.endsWith('checks.json') && folderOf(path, name));
    const reasons = file ? await reasonsIn(join(results, file)) : [];
    const checks = Number(passed) + Number(failed);
    verdicts.push({ scenario: name, passed: sign === '✓', scored: !unscored.has(name), checks, reasons });
  }
  if (verdicts.length === 0 && scenario) {
    const file = folders.find((path) => path.endsWith('checks.json'));
    const reasons = file ? await reasonsIn(join(results, file)) : [printed.slice(-500)];
    return [{ scenario, passed: reasons.length === 0, scored: true, checks: 0, reasons }];
  }
  if (verdicts.length === 0) throw new Error(`the suite found nothing to say:\n${printed.slice(-2_000)}`);
  return verdicts;
}

/** Folders are named for scenario and time. */
function folderOf(path: string, scenario: string): boolean {
  const folder = path.slice(0, -'/checks.json'.length).replace(/-\d{4}-\d\d-\d\dT[\dZ-]+$/, '');
  return folder === scenario || folder === `server-${scenario}` || folder === `client-${scenario}`;
}

interface CheckFile {
  readonly id: string;
  readonly status: string;
  readonly errorMessage?: string;
  readonly details?: object;
}

async function reasonsIn(file: string): Promise<readonly string[]> {
  const checks = JSON.parse(await readFile(file, 'utf8')) as readonly CheckFile[];
  return checks
    .filter(({ status }) => status === 'FAILURE')
    .map(({ id, errorMessage, details }) => `${id}: ${errorMessage ?? JSON.stringify(details)}`.slice(0, 400));
}
