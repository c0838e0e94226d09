/** The filters of the activity list, each with the values that its rows have. */
import { useRef } from 'preact/hooks';
import { visibleLine } from '../../../../model/values/visible-text.ts';
import { type Choices, extendChoices, FILTERS, type FilterName } from '../../filters.ts';
import type { Feed } from '../../live/feed.ts';
import { Link } from '../../router.tsx';
import { Line } from '../../ui.tsx';

const GROUPS = ['act', 'decision', 'approval', 'message', 'task', 'proof', 'system'];

const SELECTS: readonly FilterName[] = ['group', 'door', 'agent', 'tool', 'verdict', 'effect', 'person'];

interface FiltersProps {
  readonly query: URLSearchParams;
  readonly live: Feed;
  readonly show: (changes: Readonly<Record<string, string>>) => void;
}

export function Filters({ query, live, show }: FiltersProps) {
  const kept = useRef<Choices | undefined>(undefined);
  kept.current = extendChoices(kept.current, live, SELECTS);
  const choices = (name: FilterName) => [...(kept.current?.found.get(name) ?? [])].sort();
  const others = FILTERS.filter(
    (name) => !SELECTS.includes(name) && (query.get(name) || (name === 'server' && query.has(name))),
  );
  return (
    <search class="filters">
      <input
        class="wide-filter"
        type="search"
        aria-label="Text"
        placeholder="Text"
        value={query.get('text') ?? ''}
        onInput={(event) => show({ text: event.currentTarget.value })}
      />
      {SELECTS.map((name) => (
        <select
          key={name}
          class={name === 'group' || name === 'verdict' ? '' : 'extra'}
          aria-label={LABELS[name] ?? name}
          value={query.get(name) ?? ''}
          onChange={(event) => show({ [name]: event.currentTarget.value })}
        >
          <option value="">{LABELS[name] ?? name}</option>
          {withCurrent(name === 'group' ? GROUPS : choices(name), query.get(name)).map((value) => (
            <option key={value} value={value}>
              {visibleLine(value)}
            </option>
          ))}
        </select>
      ))}
      {others.map((name) => (
        <button key={name} type="button" onClick={() => show({ [name]: '' })}>
          {name}: <Line text={(query.get(name) || 'none').slice(-24)} /> ✕
        </button>
      ))}
      {[...query.keys()].some((name) => name !== 'open') && <Link to="/activity">Clear</Link>}
    </search>
  );
}

const LABELS: Readonly<Record<string, string>> = {
  group: 'Kind',
  door: 'Door',
  agent: 'Agent',
  tool: 'Tool',
  verdict: 'Decision',
  effect: 'Effect',
  person: 'Person',
};

function withCurrent(values: readonly string[], current: string | null): readonly string[] {
  return current && !values.includes(current) ? [current, ...values] : values;
}
