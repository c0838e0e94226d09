/**
 * What the gateway costs a tool call: `tools/call` of an echo, with rules, durable log and receipts, before four kinds of servers:
 * of the older era only or of both, as a program or over HTTP. Beside it `least`, which writes and syncs call and answer and does
 * nothing else, before the same server; and gateways that keep no log. Those can stand only before programs, so for servers over HTTP
 * they stand before the program of the same era. `mcp-1`: one client, the median of one call after the other. `mcp-32`, `mcp-128`:
 * as many as so many clients get done. All contenders are up at once and take turns in one run.
 */
import type { Report } from '../mcp/load.ts';
import {
  echoCommand,
  startEcho,
  startLeast,
  startLoad,
  startMcpProxy,
  startOurs,
  startRustMcpProxy,
  startSupergateway,
} from '../mcp/side.ts';
import type { Measured } from '../run.ts';
import { processorMsOf, residentOf, type Started } from '../sides/process.ts';

export const name = 'mcp';
const SIZES = { 'mcp-1': 1, 'mcp-32': 32, 'mcp-128': 128 } as const;
const KINDS = ['legacy-stdio', 'legacy-http', 'dual-stdio', 'dual-http'] as const;
type Size = keyof typeof SIZES;
type Kind = (typeof KINDS)[number];
const sizes = Object.keys(SIZES) as readonly Size[];
/** `mcp-32` measures all kinds of servers, `mcp-32-legacy-stdio` one of them. */
export const names: readonly string[] = sizes.flatMap((size) => [size, ...KINDS.map((kind) => `${size}-${kind}`)]);

/** Shortened for trying out; figures worth keeping come from the default. */
const ROUND_MS = Number(process.env.BENCH_ROUND_MS ?? 600);
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5);
/** A gateway runs for weeks: what is measured is what it is like once the engine has seen the same call some thousand times. */
const WARM_MS = ROUND_MS * 5;

export async function run(wanted: string = name): Promise<readonly Measured[]> {
  const figures: Measured[] = [];
  for (const size of sizes) {
    for (const kind of KINDS) {
      if ([name, size, `${size}-${kind}`].includes(wanted)) figures.push(await measure(size, kind));
    }
  }
  return figures;
}

async function measure(size: Size, kind: Kind): Promise<Measured> {
  const open: { close(): void }[] = [];
  const keep = <T extends { close(): void } | undefined>(part: T): T => {
    if (part) open.unshift(part);
    return part;
  };
  try {
    const flags = kind.startsWith('legacy') ? ['--legacy'] : [];
    const command = [...(await echoCommand()), '--stdio', ...flags];
    const echo = kind.endsWith('http') ? keep(await startEcho(...flags)) : undefined;
    const upstream = echo ? { url: `http://127.0.0.1:${echo.port}/mcp` } : { command };
    const alone = size === 'mcp-1';
    // The same server as it is, as one whose tool is known to read only, and as a program that sessions share.
    const ours = keep(
      await startOurs({
        echo: upstream,
        ...(alone && { read: { ...upstream, effects: { echo: 'read' } } }),
        ...(!echo && { shared: { command, share: true } }),
      }),
    );
    const before = echo ? [String(echo.port)] : command;
    const contenders: [string, Started, string?][] = [
      ['ours', ours, '/mcp/echo'],
      ['least', keep(await startLeast(before))],
      ['mcp-proxy', keep(await startMcpProxy(command))],
      ['supergateway', keep(await startSupergateway(command))],
    ];
    if (alone)
      contenders.push(['ours-read', ours, '/mcp/read'], ['least-one-sync', keep(await startLeast(before, true))]);
    if (!echo) contenders.push(['ours-shared', ours, '/mcp/shared']);
    else contenders.push(['direct', echo]);
    const rust = keep(await startRustMcpProxy(command));
    if (rust) contenders.push(['rust-mcp-proxy', rust]);

    const load = keep(startLoad());
    for (const [who, { port, token }, path = '/mcp'] of contenders) {
      await load.open({ name: who, port, path, connections: SIZES[size], era: 'legacy', ...(token && { token }) });
    }
    for (const [who] of contenders) await load.run(who, WARM_MS);
    const reports = new Map<string, MeasuredReport[]>();
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const [who, { pid }] of contenders) {
        const used = processorMsOf(pid);
        const report = await load.run(who, ROUND_MS);
        const cpuMs = (processorMsOf(pid) - used) / report.calls;
        reports.set(who, [...(reports.get(who) ?? []), { ...report, cpuMs }]);
      }
    }
    return figureOf(size, kind, reports, residentOf(ours.pid));
  } finally {
    for (const part of open) part.close();
  }
}

/** Processor time is that of the process that answers, for one call. It says more than time does where others use the machine. */
type MeasuredReport = Report & { readonly cpuMs: number };

function figureOf(
  size: Size,
  kind: Kind,
  reports: ReadonlyMap<string, readonly MeasuredReport[]>,
  rss: number,
): Measured {
  const alone = size === 'mcp-1';
  const of = (who: string, figure: (report: MeasuredReport) => number) => middle((reports.get(who) ?? []).map(figure));
  const p50 = (who: string) => of(who, (report) => report.p50);
  const rate = (who: string) => of(who, ({ calls, ms }) => (calls / ms) * 1_000);
  const [ours, others] = ['ours', ['mcp-proxy', 'supergateway']] as const;
  const better = alone ? Math.min(...others.map(p50)) : Math.max(...others.map(rate));
  const each = [...reports.keys()].flatMap((who): [string, number][] => [
    [`${who}_${alone ? 'p50_ms' : 'per_second'}`.replaceAll('-', '_'), round(alone ? p50(who) : rate(who))],
    [`${who}_cpu_ms_each`.replaceAll('-', '_'), round(of(who, (report) => report.cpuMs))],
  ]);
  const shared = reports.has('ours-shared');
  return {
    bench: `${size}-${kind}`,
    ratio: round(alone ? p50(ours) / better : rate(ours) / better),
    against: `the better of mcp-proxy and supergateway; ${alone ? 'p50 of one call after the other' : 'calls per second'}`,
    ratio_to_least: round(alone ? p50(ours) / p50('least') : rate(ours) / rate('least')),
    ...(alone && { ratio_reads_to_one_sync: round(p50('ours-read') / p50('least-one-sync')) }),
    ...(shared && { ratio_shared: round(alone ? p50('ours-shared') / better : rate('ours-shared') / better) }),
    ...Object.fromEntries(each),
    rss_mib: Math.round(rss),
  };
}

function round(value: number): number {
  return Number(value.toFixed(3));
}

function middle(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}
