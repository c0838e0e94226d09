/** What this gateway connects: doors with the configuration a client needs, agents, tool servers with pins, and keys. */
import { call, holds, type Me } from '../api.ts';
import { Link } from '../router.tsx';
import { Badge, dayAndTime, Line, Title, Trouble, useLoad } from '../ui.tsx';
import { Doors } from './catalog/doors.tsx';
import { type Key, Keys } from './catalog/keys.tsx';
import { Tools } from './catalog/tools.tsx';

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

export interface ServerState {
  readonly name: string;
  readonly state: string;
  readonly since: string;
  readonly reason?: string;
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
                    <Link to={`/activity?agent=${encodeURIComponent(`agent:${name}`)}`}>rows</Link>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
        {holds(me, 'skills:read') && (
          <Tools me={me} states={value.server_states} parts={value.parts.filter(({ kind }) => kind === 'tools')} />
        )}
        {value.keys && <Keys keys={value.keys} />}
      </div>
    </div>
  );
}

function Address({ address, state, since, reason }: AgentAddress) {
  const tone = state === 'ready' ? 'good' : state === 'unavailable' ? 'bad' : undefined;
  return (
    <p>
      <code>
        <Line text={address} />
      </code>{' '}
      {tone ? <Badge tone={tone}>{state}</Badge> : 'not used yet'} {tone && since && dayAndTime(since)}{' '}
      {reason && <Line text={reason} />}
    </p>
  );
}
