/** Doors on the left, backends on the right, one gate between them, and the traffic of the last minute on the lines. */
import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { visibleLine } from '../../../model/values/visible-text.ts';
import { all, call, holds, type Me } from '../api.ts';
import { useFeed } from '../live/feed.ts';
import { go } from '../router.tsx';
import type { EventRow } from '../rows.ts';
import { Title, Trouble, useLoad, useNow } from '../ui.tsx';
import type { Catalog } from './catalog.tsx';

const MINUTE = 60_000;
const STEP = 62;

/** Where things stand: `box` is the width of a door or backend, `gate` that of the gate in the middle. */
interface Places {
  readonly width: number;
  readonly box: number;
  readonly gate: number;
  /** Letters of a name that fit. */
  readonly letters: number;
}

const WIDE: Places = { width: 960, box: 190, gate: 140, letters: 26 };
/** On a phone both sides stay in sight. */
const NARROW: Places = { width: 372, box: 120, gate: 62, letters: 15 };

function usePlaces(): Places {
  const [query] = useState(() => matchMedia('(max-width: 720px)'));
  const [narrow, setNarrow] = useState(query.matches);
  useEffect(() => {
    const changed = () => setNarrow(query.matches);
    query.addEventListener('change', changed);
    return () => query.removeEventListener('change', changed);
  }, []);
  return narrow ? NARROW : WIDE;
}

/** Who comes through each door: its protocol's name says little to a person who has not met it. */
const USERS: Readonly<Record<string, string>> = {
  a2a: 'agents of others',
  acp: 'editors',
  ahp: 'agents that ask first',
  harn: 'programs, REST',
  mcp: 'MCP clients',
  runs: 'services',
  console: 'people',
};

interface Node {
  readonly key: string;
  readonly name: string;
  /** Who comes through a door. */
  readonly about: string;
  readonly note: string;
  readonly to: string;
}

export function MapPage({ me }: { readonly me: Me }) {
  const live = useFeed();
  const now = useNow(2000);
  const places = usePlaces();
  const { value, error } = useLoad(() => call<Catalog>('/console/api/catalog'), 'catalog');
  const tools = useLoad(
    () => (holds(me, 'skills:read') ? all<{ server: string | null }>('/v1/tools') : Promise.resolve([])),
    'tools',
  );
  // Where there are many rows, counted with the clock and not with each of the events.
  const counts = useMemo(() => traffic(live.rows, now - MINUTE), [now, live.rows.length < 5000 ? live.rows.length : 0]);
  if (!value)
    return (
      <div class="page">
        <Trouble thrown={error} />
      </div>
    );
  const since = `&since=${now - MINUTE}`;
  const doors: Node[] = [...value.doors.map(({ name }) => name), 'console'].map((name) => ({
    key: `door ${name}`,
    name,
    about: USERS[name] ?? '',
    note: `${counts.get(`door ${name}`) ?? 0} / min`,
    to: `/activity?door=${name}${since}`,
  }));
  const noted = (protocol: string, key: string) => `${protocol} · ${counts.get(key) ?? 0} / min`;
  const protocolOf = (name: string) => value.parts.find((part) => part.name === name)?.protocol ?? 'built in';
  const servers = [...new Set((tools.value ?? []).flatMap(({ server }) => server ?? []))];
  const backends: Node[] = [
    ...value.agents.map(({ name }) => ({
      key: `agent ${name}`,
      name: `agent ${name}`,
      about: '',
      note: noted(protocolOf(name), `agent ${name}`),
      to: `/activity?agent=${encodeURIComponent(`agent:${name}`)}${since}`,
    })),
    ...servers.map((name) => ({
      key: `tools ${name}`,
      name: `tools ${name}`,
      about: '',
      note: noted(protocolOf(name), `tools ${name}`),
      to: `/activity?server=${encodeURIComponent(name)}${since}`,
    })),
    ...value.parts
      .filter(({ kind }) => kind === 'harness')
      .map(({ name, protocol }) => ({
        key: `harness ${name}`,
        name: `harness ${name}`,
        about: '',
        note: protocol,
        to: '/rules',
      })),
  ];
  const height = Math.max(doors.length, backends.length, 3) * STEP + 40;
  const middle = height / 2;
  const { width, box, gate } = places;
  const [left, right] = [(width - gate) / 2, (width + gate) / 2];
  const y = (at: number, of: number) => middle - (of * STEP) / 2 + at * STEP + STEP / 2;
  const line = (from: number, to: number, at: number) =>
    `M${from} ${at} C ${(from + to) / 2} ${at}, ${(from + to) / 2} ${middle}, ${to} ${middle}`;
  return (
    <div class="page">
      <Title note="events of the last minute on their way from doors to agents and tools; a line moves where something passed">
        Map
      </Title>
      <div class="card">
        <svg class="map" viewBox={`0 0 ${width} ${height}`}>
          <title>Doors, the gate, and backends</title>
          {doors.map(({ key }, at) => (
            <path key={key} d={line(box, left, y(at, doors.length))} class={counts.get(key) ? 'busy' : ''} />
          ))}
          {backends.map(({ key }, at) => (
            <path
              key={key}
              d={line(width - box, right, y(at, backends.length))}
              class={counts.get(key) ? 'busy' : ''}
            />
          ))}
          <To to={`/activity?group=decision${since}`}>
            <title>Decisions of the gate in the last minute</title>
            <rect class="core" x={left} y={middle - 60} width={gate} height="120" rx="14" />
            <text class="core-text" x={width / 2} y={middle - 8} text-anchor="middle">
              {places === WIDE ? 'gate and log' : 'gate'}
            </text>
            <text class="core-text" x={width / 2} y={middle + 16} text-anchor="middle">
              {places === WIDE ? `${counts.get('decided') ?? 0} decisions` : (counts.get('decided') ?? 0)}
            </text>
          </To>
          {doors.map((node, at) => (
            <Box key={node.key} node={node} x={1} y={y(at, doors.length)} places={places} />
          ))}
          {backends.map((node, at) => (
            <Box key={node.key} node={node} x={width - box + 1} y={y(at, backends.length)} places={places} />
          ))}
        </svg>
      </div>
    </div>
  );
}

function Box({
  node,
  x,
  y,
  places,
}: {
  readonly node: Node;
  readonly x: number;
  readonly y: number;
  readonly places: Places;
}) {
  const name = visibleLine(node.name);
  return (
    <To to={node.to}>
      <title>{node.about ? `${name}: ${node.about}` : name}</title>
      <rect x={x} y={y - 23} width={places.box - 2} height="46" rx="8" />
      <text x={x + 10} y={y - 3}>
        {name.length > places.letters ? `${name.slice(0, places.letters - 1)}…` : name}
      </text>
      <text class="small" x={x + 10} y={y + 13}>
        {visibleLine([places === WIDE && node.about, node.note].filter(Boolean).join(' · ')).slice(
          0,
          places.letters + 12,
        )}
      </text>
    </To>
  );
}

/** A link in the drawing. */
function To({ to, children }: { readonly to: string; readonly children: ComponentChildren }) {
  return (
    <a
      href={to}
      onClick={(event) => {
        event.preventDefault();
        go(to);
      }}
    >
      {children}
    </a>
  );
}

/** Rows of the last minute by door, agent and tool server. */
function traffic(rows: readonly EventRow[], since: number): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  const add = (key: string) => found.set(key, (found.get(key) ?? 0) + 1);
  for (let at = rows.length - 1; at >= 0; at -= 1) {
    const row = rows[at] as EventRow;
    if (row.at < since) break;
    if (row.verdict) add('decided');
    if (row.door) add(`door ${row.door}`);
    if (row.server) add(`tools ${row.server}`);
    if (row.agent) add(`agent ${row.agent.replace(/^agent[:/]/, '')}`);
  }
  return found;
}
