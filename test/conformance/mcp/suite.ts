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
  const command = await tool('conformance', tell);
  if ('server' in target) {
    const which = scenario ? ['--scenario', scenario, '--spec-version', revision] : ['--requirements', revision];
    return await runOnce([...command, 'server', '--url', target.server, ...which], scenario);
  }
  // The suite begins all client scenarios at once. Each of them starts a gateway, so they go one after the other here.
  const verdicts: Verdict[] = [];
  for (const each of scenario ? [scenario] : await requiredOfClients(command, revision)) {
    const which = ['--scenario', each, '--spec-version', revision, '--timeout', '60000'];
    verdicts.push(...(await runOnce([...command, 'client', '--command', target.client, ...which], each)));
  }
  return verdicts;
}

async function requiredOfClients(command: readonly string[], revision: Revision): Promise<readonly string[]> {
  const { text } = await output([...command, 'list', '--requirements', revision]);
  const [, clients = ''] = /Client scenarios[^\n]*\n([\s\S]*?)\n\s*\n/.exec(text) ?? [];
  const names = [...clients.matchAll(/^\s+- (\S+)$/gm)].map(([, name]) => name as string);
  if (names.length === 0) throw new Error(`the suite asks nothing of clients:\n${text}`);
  return names;
}

async function runOnce(command: readonly string[], scenario?: string): Promise<readonly Verdict[]> {
  const results = await mkdtemp(join(tmpdir(), 'tb-conformance-'));
  try {
    const { text, code } = await output([...command, '-o', results]);
    if (!scenario) return await verdictsIn(text, results);
    // One that was asked for by name may belong to another revision.
    return text.includes(`SKIPPED: scenario '${scenario}'`) ? [] : [await verdictOn(scenario, code, text, results)];
  } finally {
    await rm(results, { recursive: true, force: true });
  }
}

function output([program, ...args]: readonly string[]): Promise<{
  readonly text: string;
  readonly code: number | null;
}> {
  return new Promise((resolve, reject) => {
    const child = spawn(program as string, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    let text = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
    }
    child.once('error', reject);
    child.once('close', (code) => resolve({ text, code }));
  });
}

/** One scenario by itself has no summary; how the suite exits is its verdict. */
async function verdictOn(scenario: string, code: number | null, text: string, results: string): Promise<Verdict> {
  const file = (await readdir(results, { recursive: true })).find((path) => path.endsWith('checks.json'));
  const found = file ? await reasonsIn(join(results, file)) : { reasons: [], checks: 0 };
  const passed = code === 0 && found.checks > 0;
  const reasons = passed || found.reasons.length > 0 ? found.reasons : [text.slice(-600)];
  return { scenario, passed, scored: true, checks: found.checks, reasons };
}

/** One line of its summary. */
const LINE = /^\s*([✓✗])\s+([a-z0-9_/.-]+): (\d+) passed, (\d+) failed/iu;

async function verdictsIn(printed: string, results: string): Promise<readonly Verdict[]> {
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
    const { reasons } = file ? await reasonsIn(join(results, file)) : { reasons: [] };
    const checks = Number(passed) + Number(failed);
    verdicts.push({ scenario: name, passed: sign === '✓', scored: !unscored.has(name), checks, reasons });
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

async function reasonsIn(file: string): Promise<{ readonly reasons: readonly string[]; readonly checks: number }> {
  const checks = JSON.parse(await readFile(file, 'utf8')) as readonly CheckFile[];
  const reasons = checks
    .filter(({ status }) => status === 'FAILURE')
    .map(({ id, errorMessage, details }) => `${id}: ${errorMessage ?? JSON.stringify(details)}`.slice(0, 400));
  return { reasons, checks: checks.filter(({ status }) => status === 'SUCCESS' || status === 'FAILURE').length };
}
