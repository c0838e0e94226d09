/**
 * What the gateway costs a tool call: `tools/call` of an echo over HTTP, with rules, durable log and receipts, against the
 * server itself and against two other gateways that do none of this. Those two can only stand before a server on standard
 * input and output, so that is where they and we are compared; before a server over HTTP we are measured as well.
 * `mcp-1`: one client, the median of one call after the other. `mcp-32`: as many as 32 clients get done. All contenders are
 * up at once and take turns in one run.
 */
import type { Report } from '../mcp/load.ts';
import {
  echoCommand,
  startEcho,
  startLeast,
  startLoad,
  startMcpProxy,
  startOurs,
  startSupergateway,
} from '../mcp/side.ts';
import type { Measured } from '../run.ts';
import { processorMsOf, residentOf, type Started } from '../sides/process.ts';

export const name = 'mcp';
export const names = ['mcp-1', 'mcp-32'] as const;
type Name = (typeof names)[number];

/** Shortened for trying out; figures worth keeping come from the default. */
const ROUND_MS = Number(process.env.BENCH_ROUND_MS ?? 600);
const ROUNDS = 5;
/** A gateway runs for weeks: what is measured is what it is like once the engine has seen the same call some thousand times. */
const WARM_MS = ROUND_MS * 5;

export async function run(wanted: string = name): Promise<readonly Measured[]> {
  const figures: Measured[] = [];
  for (const each of wanted === name ? names : [wanted as Name]) figures.push(await measure(each));
  return figures;
}

async function measure(bench: Name): Promise<Measured> {
  const connections = bench === 'mcp-1' ? 1 : 32;
  const open: { close(): void }[] = [];
  const keep = <T extends { close(): void }>(part: T): T => {
    open.unshift(part);
    return part;
  };
  try {
    const command = [...(await echoCommand()), '--stdio'];
    const echo = keep(await startEcho());
    const ours = keep(await startOurs({ http: { url: `http://127.0.0.1:${echo.port}/mcp` }, stdio: { command } }));
    const least = keep(await startLeast(echo.port));
    const others = {
      'mcp-proxy': keep(await startMcpProxy(command)),
      supergateway: keep(await startSupergateway(command)),
    };
    const load = keep(startLoad());
    const target = (name: string, { port, token }: Started, path = '/mcp') =>
      load.open({ name, port, path, connections, era: 'legacy', ...(token && { token }) });
    await target('direct', echo);
    await target('least', least);
    await target('ours', ours, '/mcp/http');
    await target('ours-stdio', ours, '/mcp/stdio');
    for (const [other, started] of Object.entries(others)) await target(other, started);

    const pids = { direct: echo.pid, least: least.pid, ours: ours.pid, 'ours-stdio': ours.pid };
    const contenders = Object.entries<number>(pids).concat(
      Object.entries(others).map(([other, started]) => [other, started.pid]),
    );
    for (const [who] of contenders) await load.run(who, WARM_MS);

    const reports = new Map<string, MeasuredReport[]>();
    let settled = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const [who, pid] of contenders) {
        const before = processorMsOf(pid);
        const report = await load.run(who, ROUND_MS);
        const cpuMs = (processorMsOf(pid) - before) / report.calls;
        reports.set(who, [...(reports.get(who) ?? []), { ...report, cpuMs }]);
      }
      if (round === 0) settled = residentOf(ours.pid);
    }
    const of = (figure: (report: MeasuredReport) => number) => (who: string) => middle(reports.get(who)!.map(figure));
    const figures: Figures = {
      p50: of((each) => each.p50),
      rate: of(({ calls, ms }) => (calls / ms) * 1_000),
      cpuMs: of((each) => each.cpuMs),
    };
    return figureOf(bench, figures, { settled, last: residentOf(ours.pid) });
  } finally {
    for (const part of open) part.close();
  }
}

type MeasuredReport = Report & { readonly cpuMs: number };

/** The middle of all rounds, by contender. */
interface Figures {
  p50(who: string): number;
  rate(who: string): number;
  /** Of the process that answers, for one call. Says more than time does where others use the machine. */
  cpuMs(who: string): number;
}

function figureOf(
  bench: Name,
  { p50, rate, cpuMs }: Figures,
  resident: { readonly settled: number; readonly last: number },
): Measured {
  const round = (value: number) => Number(value.toFixed(3));
  const shared = {
    ours_cpu_ms_each: round(cpuMs('ours')),
    ours_stdio_cpu_ms_each: round(cpuMs('ours-stdio')),
    mcp_proxy_cpu_ms_each: round(cpuMs('mcp-proxy')),
    supergateway_cpu_ms_each: round(cpuMs('supergateway')),
    rss_settled_mib: Math.round(resident.settled),
    rss_last_mib: Math.round(resident.last),
  };
  if (bench === 'mcp-1') {
    const better = Math.min(p50('mcp-proxy'), p50('supergateway'));
    return {
      bench,
      ratio: round(p50('ours-stdio') / better),
      against:
        'the quicker of mcp-proxy and supergateway, all before the same stdio server; p50 of one call after the other',
      ratio_http_server: round(p50('ours') / better),
      added_p50_ms: round(p50('ours') - p50('direct')),
      ours_p50_ms: round(p50('ours')),
      ours_stdio_p50_ms: round(p50('ours-stdio')),
      direct_p50_ms: round(p50('direct')),
      // Of a gateway that writes call and answer to disk and does nothing else: before the same server as ours.
      least_added_p50_ms: round(p50('least') - p50('direct')),
      mcp_proxy_p50_ms: round(p50('mcp-proxy')),
      supergateway_p50_ms: round(p50('supergateway')),
      ...shared,
    };
  }
  const better = Math.max(rate('mcp-proxy'), rate('supergateway'));
  return {
    bench,
    ratio: round(rate('ours-stdio') / better),
    against:
      'the better of mcp-proxy and supergateway, all before the same stdio server; calls per second of 32 clients',
    ratio_http_server: round(rate('ours') / better),
    ours_per_second: Math.round(rate('ours')),
    ours_stdio_per_second: Math.round(rate('ours-stdio')),
    direct_per_second: Math.round(rate('direct')),
    least_per_second: Math.round(rate('least')),
    mcp_proxy_per_second: Math.round(rate('mcp-proxy')),
    supergateway_per_second: Math.round(rate('supergateway')),
    ratio_to_direct: round(rate('ours') / rate('direct')),
    ours_p50_ms: round(p50('ours')),
    ...shared,
  };
}

function middle(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}
