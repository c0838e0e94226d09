/** A handful of numbers about this door and the tools, in Prometheus text. No label ever holds an id or a name a caller chose. */
import type { AddressState, ToolCallCount, ToolPrograms, ToolServerState } from '../../../src/index.ts';

export interface Metrics {
  answered(operation: string, status: number, seconds: number): void;
  streamOpened(kind: StreamKind): void;
  streamClosed(kind: StreamKind, cutOff: boolean): void;
  eventsSent(count: number): void;
  /** All of them are named by the configuration and its servers. */
  text(
    calls: readonly ToolCallCount[],
    servers: readonly ToolServerState[],
    addresses: readonly (AddressState & { readonly agent: string })[],
  ): string;
}
export type StreamKind = 'sse' | 'websocket';

export function createMetrics(): Metrics {
  const requests = new Map<string, number>();
  const seconds = { sum: 0, count: 0 };
  const open: Record<StreamKind, number> = { sse: 0, websocket: 0 };
  const cut: Record<StreamKind, number> = { sse: 0, websocket: 0 };
  let sent = 0;

  return {
    answered(operation, status, took) {
      const key = `operation="${operation}",status="${status}"`;
      requests.set(key, (requests.get(key) ?? 0) + 1);
      seconds.sum += took;
      seconds.count += 1;
    },
    streamOpened(kind) {
      open[kind] += 1;
    },
    streamClosed(kind, cutOff) {
      open[kind] -= 1;
      if (cutOff) cut[kind] += 1;
    },
    eventsSent(count) {
      sent += count;
    },
    text(calls, servers, addresses) {
      const { rss, heapUsed } = process.memoryUsage();
      return [
        '# HELP tollbridge_http_requests_total Requests answered, by operation and status.',
        '# TYPE tollbridge_http_requests_total counter',
        ...[...requests].toSorted().map(([labels, count]) => `tollbridge_http_requests_total{${labels}} ${count}`),
        '# HELP tollbridge_http_request_seconds Time to answer, streams excepted.',
        '# TYPE tollbridge_http_request_seconds summary',
        `tollbridge_http_request_seconds_sum ${seconds.sum}`,
        `tollbridge_http_request_seconds_count ${seconds.count}`,
        '# HELP tollbridge_streams_open Followers connected now.',
        '# TYPE tollbridge_streams_open gauge',
        ...kinds((kind) => `tollbridge_streams_open{kind="${kind}"} ${open[kind]}`),
        '# HELP tollbridge_streams_cut_off_total Followers cut off because they did not read.',
        '# TYPE tollbridge_streams_cut_off_total counter',
        ...kinds((kind) => `tollbridge_streams_cut_off_total{kind="${kind}"} ${cut[kind]}`),
        '# HELP tollbridge_events_sent_total Events written to followers.',
        '# TYPE tollbridge_events_sent_total counter',
        `tollbridge_events_sent_total ${sent}`,
        '# HELP tollbridge_tool_server_up Whether a tool server answered when it was last asked for its tools.',
        '# TYPE tollbridge_tool_server_up gauge',
        ...servers.flatMap(({ name, state }) =>
          state === 'unknown' ? [] : [`tollbridge_tool_server_up{server=${quoted(name)}} ${Number(state === 'ready')}`],
        ),
        '# HELP tollbridge_tool_children Programs of a tool server that run now.',
        '# TYPE tollbridge_tool_children gauge',
        ...programs(servers, 'tollbridge_tool_children', 'running'),
        '# HELP tollbridge_tool_children_refused_total Programs that were not started because of max_children.',
        '# TYPE tollbridge_tool_children_refused_total counter',
        ...programs(servers, 'tollbridge_tool_children_refused_total', 'refused'),
        '# HELP tollbridge_agent_address_up Whether an agent answered at one of its addresses when that was last used.',
        '# TYPE tollbridge_agent_address_up gauge',
        ...addresses.flatMap(({ agent, address, state }) => {
          const where = `agent=${quoted(agent)},address=${quoted(address)}`;
          return state === 'unknown' ? [] : [`tollbridge_agent_address_up{${where}} ${Number(state === 'ready')}`];
        }),
        '# HELP tollbridge_tool_calls_total Calls of tools, by server, tool and outcome.',
        '# TYPE tollbridge_tool_calls_total counter',
        ...calls.map((call) => `tollbridge_tool_calls_total{${labels(call)}} ${call.calls}`),
        '# HELP tollbridge_tool_call_seconds_total Time that calls took at their server.',
        '# TYPE tollbridge_tool_call_seconds_total counter',
        ...calls.map((call) => `tollbridge_tool_call_seconds_total{${labels(call)}} ${call.seconds}`),
        '# HELP process_resident_memory_bytes Resident memory.',
        '# TYPE process_resident_memory_bytes gauge',
        `process_resident_memory_bytes ${rss}`,
        '# HELP nodejs_heap_size_used_bytes Heap in use.',
        '# TYPE nodejs_heap_size_used_bytes gauge',
        `nodejs_heap_size_used_bytes ${heapUsed}`,
        '',
      ].join('\n');
    },
  };
}

function labels({ server, tool, outcome }: ToolCallCount): string {
  return `server=${quoted(server)},tool=${quoted(tool)},outcome="${outcome}"`;
}

function programs(servers: readonly ToolServerState[], metric: string, count: keyof ToolPrograms): string[] {
  return servers.flatMap(({ name, programs: found }) =>
    found ? [`${metric}{server=${quoted(name)}} ${found[count]}`] : [],
  );
}

function quoted(text: string): string {
  return `"${text.replace(/[\\"\n]/g, (each) => (each === '\n' ? '\\n' : `\\${each}`))}"`;
}

function kinds(line: (kind: StreamKind) => string): string[] {
  return [line('sse'), line('websocket')];
}
