/** Runs categories one after the other and tells how it went: in words, and in the public suite's report shape. */
import { performance } from 'node:perf_hooks';
import { Skip } from './expect.ts';
import type { Category } from './suite.ts';
import type { Target } from './target.ts';

type Status = 'passed' | 'failed' | 'skipped';

interface TestReport {
  readonly name: string;
  readonly status: Status;
  readonly duration_ms: number;
  readonly error?: string;
}
interface CategoryReport {
  readonly name: string;
  readonly status: Status;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly duration_ms: number;
  readonly percentiles_ms: Percentiles;
  readonly tests: readonly TestReport[];
}
interface Percentiles {
  readonly avg: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}
export interface Report {
  readonly schema: 'harn-agents-conformance-2026-04-25';
  readonly target: string;
  readonly protocol_version: string;
  readonly generated_at: string;
  readonly summary: Readonly<Record<string, unknown>> & { passed: number; failed: number; skipped: number };
  readonly percentiles_ms: Percentiles;
  readonly capabilities: Readonly<Record<string, boolean>>;
  readonly categories: readonly CategoryReport[];
}

export type Listener = (category: string, test: TestReport) => void;

export async function runCategories(
  categories: readonly { readonly category: Category; readonly at: Target }[],
  reported: Listener,
  /** Stops after the first check that failed. */
  bail = false,
): Promise<readonly CategoryReport[]> {
  const reports: CategoryReport[] = [];
  for (const { category, at } of categories) {
    const tests: TestReport[] = [];
    for (const check of category.checks) {
      const test = await runCheck(check, at);
      tests.push(test);
      reported(category.name, test);
      if (bail && test.status === 'failed') return [...reports, categoryReport(category.name, tests)];
    }
    reports.push(categoryReport(category.name, tests));
  }
  return reports;
}

async function runCheck(check: Category['checks'][number], at: Target): Promise<TestReport> {
  const began = performance.now();
  const took = () => Math.round(performance.now() - began);
  try {
    await check.run(at);
    return { name: check.name, status: 'passed', duration_ms: took() };
  } catch (thrown) {
    const error = reasonOf(thrown);
    return { name: check.name, status: thrown instanceof Skip ? 'skipped' : 'failed', duration_ms: took(), error };
  }
}

function reasonOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  const cause = thrown.cause instanceof Error ? ` (${thrown.cause.message})` : '';
  return `${thrown.message || thrown.name}${cause}`;
}

function categoryReport(name: string, tests: readonly TestReport[]): CategoryReport {
  const counts = count(tests);
  const status = counts.failed > 0 ? 'failed' : counts.passed > 0 ? 'passed' : 'skipped';
  const times = tests.map(({ duration_ms }) => duration_ms);
  return { name, status, ...counts, duration_ms: sum(times), percentiles_ms: percentiles(times), tests };
}

export function reportOf(
  target: string,
  version: string,
  categories: readonly CategoryReport[],
  capabilities: Readonly<Record<string, boolean>>,
): Report {
  const tests = categories.flatMap((category) => category.tests);
  const { passed, failed, skipped } = count(tests);
  const times = tests.map(({ duration_ms }) => duration_ms);
  const having = (status: Status) => categories.filter((category) => category.status === status).length;
  return {
    schema: 'harn-agents-conformance-2026-04-25',
    target,
    protocol_version: version,
    generated_at: new Date().toISOString(),
    summary: {
      status: failed > 0 ? 'failed' : passed > 0 ? 'passed' : 'skipped',
      score: passed + failed === 0 ? 0 : passed / (passed + failed),
      passed,
      failed,
      skipped,
      total: tests.length,
      categories_passed: having('passed'),
      categories_failed: having('failed'),
      categories_skipped: having('skipped'),
      duration_ms: sum(times),
    },
    percentiles_ms: percentiles(times),
    capabilities,
    categories,
  };
}

function count(tests: readonly TestReport[]) {
  const having = (status: Status) => tests.filter((test) => test.status === status).length;
  return { passed: having('passed'), failed: having('failed'), skipped: having('skipped') };
}

function percentiles(times: readonly number[]): Percentiles {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
  return { avg: sorted.length === 0 ? 0 : sum(sorted) / sorted.length, p50: at(0.5), p95: at(0.95), p99: at(0.99) };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
