/** Tool servers, their state, and how each of their tools was used. */
import { useRef } from 'preact/hooks';
import { all, type Me } from '../../api.ts';
import { useFeed } from '../../live/feed.ts';
import { Link } from '../../router.tsx';
import { countedSince, extendTally, type Measure, measureKey, median, type Tally } from '../../tally.ts';
import { Badge, Count, duration, Empty, Line, Table, Trouble, useLoad } from '../../ui.tsx';
import type { Catalog, ServerState } from '../catalog.tsx';
import { Drift, type Pin, refusedOf } from './drift.tsx';

interface Tool {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly server: string | null;
}

interface ToolsProps {
  readonly me: Me;
  readonly states: readonly ServerState[];
  /** Tool servers of the configuration. */
  readonly parts: Catalog['parts'];
}

export function Tools({ me, states, parts }: ToolsProps) {
  const tools = useLoad(() => all<Tool>('/v1/tools'), 'tools');
  const pins = useLoad(() => all<Pin>('/v1/skills'), 'pins');
  const pinned = (pins.value ?? []).filter(({ metadata }) => metadata.pinned === true);
  const drifted = pinned
    .filter(({ metadata }) => metadata.pending !== undefined)
    .sort((a, b) => Number(refusedOf(a) !== undefined) - Number(refusedOf(b) !== undefined));
  const live = useFeed();
  const tally = useRef<Tally | undefined>(undefined);
  tally.current = extendTally(tally.current, live);
  const measured = new Map(countedSince(tally.current, 0).tools.map((one) => [measureKey(one.server, one.name), one]));
  /** What is a part of the gateway does not change behind its back, and has no pin. */
  const configured = new Set(parts.map(({ name }) => name));
  const servers = [...new Set((tools.value ?? []).map(({ server }) => server ?? ''))];
  return (
    <>
      {drifted.map((pin) => (
        <Drift key={pin.id} pin={pin} me={me} done={pins.again} />
      ))}
      <section class="card">
        <h2>Tool servers</h2>
        <Trouble thrown={tools.error} />
        {states
          .filter(({ state }) => state !== 'ready' && state !== 'unknown')
          .map(({ name, state, reason }) => (
            <p key={name}>
              <b>
                <Line text={name} />
              </b>{' '}
              <Badge tone="bad">{state}</Badge> <Line text={reason ?? 'it has not answered yet'} />
            </p>
          ))}
        {servers.length === 0 && tools.value && <Empty title="No tool server is mounted" />}
        {servers.map((server) => (
          <div key={server}>
            <p>
              <b>
                <Line text={server || 'without a server'} />
              </b>
            </p>
            <Table columns={['Tool']} numbers={['Calls', 'Refused', 'Failed', 'Median time', 'Cost', 'Definition']}>
              {(tools.value ?? [])
                .filter((tool) => (tool.server ?? '') === server)
                .map((tool) => {
                  const pin = pinned.find(({ name, source }) => name === tool.name && source === tool.server);
                  return (
                    <tr key={tool.id}>
                      <td>
                        <Link to={rowsOf(tool.name, server)}>
                          <Line text={tool.name} />
                        </Link>
                        <p class="soft">
                          <Line text={tool.description.slice(0, 160)} />
                        </p>
                      </td>
                      <Numbers rows={rowsOf(tool.name, server)} measure={measured.get(measureKey(server, tool.name))} />
                      <td class="n">
                        {pin ? (
                          <Badge tone={pin.metadata.pending ? 'bad' : 'good'}>
                            {refusedOf(pin)
                              ? 'refused'
                              : pin.metadata.pending
                                ? 'changed'
                                : `pinned ${pin.version.slice(7, 15)}`}
                          </Badge>
                        ) : (
                          <Badge>{configured.has(server) ? 'not called yet' : 'built in'}</Badge>
                        )}
                      </td>
                    </tr>
                  );
                })}
            </Table>
          </div>
        ))}
      </section>
    </>
  );
}

/** The rows about one tool: another server may have one of the same name. */
export function rowsOf(tool: string, server: string): string {
  return `/activity?tool=${encodeURIComponent(tool)}&server=${encodeURIComponent(server)}`;
}

/** How a tool was used, as far as this page has read the log; each number leads to its rows. */
function Numbers({ rows, measure }: { readonly rows: string; readonly measure: Measure | undefined }) {
  const to = (more: string) => `${rows}${more}`;
  const { calls = 0, blocked = 0, failed = 0, times = [], usd = 0 } = measure ?? {};
  return (
    <>
      <Count to={to('&event=tool.requested')} value={calls} />
      <Count to={to('&verdict=block')} value={blocked} />
      <Count to={to('&event=tool.failed')} value={failed} />
      <Count to={to('&event=tool.completed')} value={times.length} text={duration(median(times) ?? Number.NaN)} />
      <Count to={to('&group=decision')} value={usd} text={`${usd.toFixed(4)} USD`} />
    </>
  );
}
