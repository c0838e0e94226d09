/** What this gateway connects: doors with the configuration a client needs, agents, tool servers with pins, and keys. */
import { useRef, useState } from 'preact/hooks';
import { ApiError, all, call, type Me } from '../api.ts';
import { clientConfigs } from '../client-configs.ts';
import { useFeed } from '../feed.ts';
import { Link } from '../router.tsx';
import { bag, str } from '../rows.ts';
import { countedSince, extendTally, type Measure, median, type Tally } from '../tally.ts';
import { Badge, Block, Copy, Count, dayAndTime, duration, Empty, Line, Title, Trouble, useLoad } from '../ui.tsx';

export interface Catalog {
  readonly doors: readonly { readonly name: string }[];
  readonly agents: readonly {
    readonly name: string;
    readonly default: boolean;
    readonly about?: Readonly<Record<string, unknown>>;
  }[];
  readonly agent_addresses: readonly AgentAddress[];
  readonly parts: readonly { readonly kind: string; readonly name: string; readonly protocol: string }[];
  readonly servers: readonly string[];
  readonly server_states: readonly ServerState[];
  readonly keys: readonly Key[] | null;
}
interface AgentAddress {
  readonly agent: string;
  readonly address: string;
  readonly state: string;
  readonly since?: string;
  readonly reason?: string;
}
interface ServerState {
  readonly name: string;
  readonly state: string;
  readonly since: string;
  readonly reason?: string;
}
interface Key {
  readonly id: string;
  readonly name: string;
  readonly state: string;
  readonly actor: {
    readonly id: string;
    readonly kind: string;
    readonly scopes: readonly string[];
    readonly doors?: readonly string[];
  };
  readonly expires_at: string | null;
  readonly created_at: string;
  readonly last_used_at: string | null;
}
interface Tool {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly server: string | null;
}
interface Pin {
  readonly id: string;
  readonly name: string;
  readonly source: string | null;
  readonly version: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}

export function CatalogPage({ me }: { readonly me: Me }) {
  const { value, error } = useLoad(() => call<Catalog>('/console/api/catalog'), 'catalog');
  if (error)
    return (
      <div class="page">
        <Trouble thrown={error} />
      </div>
    );
  if (!value) return <div class="page" aria-busy="true" />;
  return (
    <div class="page">
      <Title note={`${value.doors.length} doors · ${value.agents.length} agents`}>Catalog</Title>
      <div class="stack">
        <Doors catalog={value} />
        <section class="card">
          <h2>Agents</h2>
          <table>
            <tbody>
              {value.agents.map(({ name, default: isDefault }) => (
                <tr key={name}>
                  <td>
                    <b>
                      <Line text={name} />
                    </b>{' '}
                    {isDefault && <Badge tone="info">default</Badge>}
                  </td>
                  <td class="soft">
                    {value.parts.find((part) => part.kind === 'agent' && part.name === name)?.protocol ?? 'built in'}
                    {value.agent_addresses
                      .filter(({ agent }) => agent === name)
                      .map((each) => (
                        <Address key={each.address} {...each} />
                      ))}
                  </td>
                  <td class="n">
                    <Link to={`/activity?text=${encodeURIComponent(name)}`}>rows</Link>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
        <Tools me={me} states={value.server_states} />
        {value.keys && <Keys keys={value.keys} />}
      </div>
    </div>
  );
}

function Address({ address, state, since, reason }: AgentAddress) {
  const tone = state === 'ready' ? 'good' : state === 'unavailable' ? 'bad' : undefined;
  return (
    <p>
      <code>{address}</code> {tone ? <Badge tone={tone}>{state}</Badge> : 'not used yet'}{' '}
      {tone && since && dayAndTime(since)} {reason && <Line text={reason} />}
    </p>
  );
}

function Doors({ catalog }: { readonly catalog: Catalog }) {
  const [open, setOpen] = useState('');
  return (
    <section class="card">
      <h2>Doors</h2>
      <table>
        <tbody>
          {catalog.doors.map(({ name }) => {
            const { about, address, configs } = clientConfigs(name, location.origin, catalog.agents[0]?.name ?? 'demo');
            return (
              <tr key={name}>
                <td>
                  <b>{name}</b>
                  <p class="soft">{about}</p>
                </td>
                <td>
                  <code>{address}</code>
                  {open === name &&
                    configs.map(({ title, text }) => (
                      <div key={title}>
                        <p>
                          {title} <Copy text={text} />
                        </p>
                        <Block text={text} />
                      </div>
                    ))}
                </td>
                <td class="n">
                  <button
                    type="button"
                    aria-expanded={open === name}
                    onClick={() => setOpen(open === name ? '' : name)}
                  >
                    {open === name ? 'Hide' : 'Connect'}
                  </button>
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      <p class="soft">
        A client on this machine uses the printed token or an API key; elsewhere an API key: tollbridge keys create.
      </p>
    </section>
  );
}

function Tools({ me, states }: { readonly me: Me; readonly states: readonly ServerState[] }) {
  const tools = useLoad(() => all<Tool>('/v1/tools'), 'tools');
  const pins = useLoad(() => all<Pin>('/v1/skills'), 'pins');
  if (tools.error instanceof ApiError && tools.error.status === 403) return null;
  const pinned = (pins.value ?? []).filter(({ metadata }) => metadata.pinned === true);
  const drifted = pinned
    .filter(({ metadata }) => metadata.pending !== undefined)
    .sort((a, b) => Number(refusedOf(a) !== undefined) - Number(refusedOf(b) !== undefined));
  const live = useFeed();
  const tally = useRef<Tally | undefined>(undefined);
  tally.current = extendTally(tally.current, live);
  const measured = new Map(countedSince(tally.current, 0).tools.map((one) => [one.name, one]));
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
            <div class="table-wrap" tabIndex={0}>
              <table>
                <thead>
                  <tr>
                    <th>Tool</th>
                    <th class="n">Calls</th>
                    <th class="n">Refused</th>
                    <th class="n">Failed</th>
                    <th class="n">Median time</th>
                    <th class="n">Cost</th>
                    <th class="n">Definition</th>
                  </tr>
                </thead>
                <tbody>
                  {(tools.value ?? [])
                    .filter((tool) => (tool.server ?? '') === server)
                    .map((tool) => {
                      const pin = pinned.find(({ name, source }) => name === tool.name && source === tool.server);
                      return (
                        <tr key={tool.id}>
                          <td>
                            <Link to={`/activity?tool=${encodeURIComponent(tool.name)}`}>
                              <Line text={tool.name} />
                            </Link>
                            <p class="soft">
                              <Line text={tool.description.slice(0, 160)} />
                            </p>
                          </td>
                          <Numbers name={tool.name} measure={measured.get(tool.name)} />
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
                              <Badge>not pinned yet</Badge>
                            )}
                          </td>
                        </tr>
                      );
                    })}
                </tbody>
              </table>
            </div>
          </div>
        ))}
      </section>
    </>
  );
}

/** How a tool was used, as far as this page has read the log; each number leads to its rows. */
function Numbers({ name, measure }: { readonly name: string; readonly measure: Measure | undefined }) {
  const to = (more: string) => `/activity?tool=${encodeURIComponent(name)}${more}`;
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

/** Who refused the definition that the tool has now, and when. */
function refusedOf({ metadata }: Pin): { readonly by: string; readonly at: string } | undefined {
  const { version, by, at } = bag(metadata.refused);
  return version !== undefined && version === bag(metadata.pending).version ? { by: str(by), at: str(at) } : undefined;
}

const COMPARED = ['description', 'input_schema', 'output_schema'] as const;

function Drift({ pin, me, done }: { readonly pin: Pin; readonly me: Me; readonly done: () => void }) {
  const [trouble, setTrouble] = useState<unknown>();
  const pending = bag(pin.metadata.pending);
  const refused = refusedOf(pin);
  const was = pin as unknown as Readonly<Record<string, unknown>>;
  const shown = (value: unknown) =>
    typeof value === 'string' ? value : (JSON.stringify(value ?? null, undefined, 2) ?? '');
  const answer = (accept: boolean) => {
    call(`/console/api/pins/${pin.id}`, { json: { accept, version: pending.version } }).then(done, setTrouble);
  };
  const members = [
    ...COMPARED.map((name) => [name, shown(was[name]), shown(pending[name])] as const),
    ['annotations', shown(pin.metadata.annotations), shown(bag(pending.metadata).annotations)] as const,
  ];
  return (
    <section class="card drift" aria-label={`Changed definition of ${pin.name}`}>
      <h2>
        <Badge tone="bad">{refused ? 'refused' : 'changed'}</Badge>{' '}
        <Line text={`${pin.name} of ${pin.source ?? ''} is no longer what it was`} />
      </h2>
      <p class="soft" role="status">
        {refused ? (
          <Line text={`Refused by ${refused.by} at ${dayAndTime(refused.at)}. Calls of it stay refused.`} />
        ) : (
          'Calls of it are refused until an admin accepts the new definition.'
        )}
      </p>
      {members
        .filter(([, before, after]) => before !== after)
        .map(([name, before, after]) => (
          <div key={name}>
            <h3>{name}</h3>
            <div class="side">
              <div>
                <p class="soft">as pinned</p>
                <Block text={before} />
              </div>
              <div>
                <p class="soft">as it is now</p>
                <Block text={after} />
              </div>
            </div>
          </div>
        ))}
      <Trouble thrown={trouble} />
      {me.role === 'admin' && (
        <div class="choice">
          {!refused && (
            <button type="button" class="no" onClick={() => answer(false)}>
              Refuse
            </button>
          )}
          <button type="button" class="yes" onClick={() => answer(true)}>
            Accept the new definition
          </button>
        </div>
      )}
    </section>
  );
}

function Keys({ keys }: { readonly keys: readonly Key[] }) {
  return (
    <section class="card">
      <h2>API keys</h2>
      {keys.length === 0 && <p class="soft">None. On this machine the printed token is enough.</p>}
      <div class="table-wrap" tabIndex={0}>
        <table>
          <tbody>
            {keys.map(({ id, name, state, actor, expires_at, last_used_at }) => (
              <tr key={id}>
                <td>
                  <b>
                    <Line text={name} />
                  </b>{' '}
                  <span class="soft mono">{id}</span>
                </td>
                <td>
                  <Badge tone={state === 'active' ? 'good' : 'bad'}>{state}</Badge>
                </td>
                <td>
                  <Link to={`/activity?person=${encodeURIComponent(actor.id)}`}>
                    <Line text={`${actor.kind} ${actor.id}`} />
                  </Link>
                </td>
                <td class="soft">
                  <Line text={actor.scopes.join(' ')} />{' '}
                  {actor.doors && <Line text={`at ${str(actor.doors.join(', '))}`} />}
                </td>
                <td class="soft">
                  {last_used_at ? `last used ${dayAndTime(last_used_at)}` : 'not used since the gateway started'}
                </td>
                <td class="n soft">{expires_at ? `until ${dayAndTime(expires_at)}` : 'no end'}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
