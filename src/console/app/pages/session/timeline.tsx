/** The work of a session as nested spans on one time line. */
import { visibleLine } from '../../../../model/values/visible-text.ts';
import type { Span } from '../../spans.ts';
import { Badge, duration, Empty, Line } from '../../ui.tsx';
import { Virtual } from '../../virtual.tsx';

export function Timeline({
  spans,
  open,
  show,
}: {
  readonly spans: readonly Span[];
  readonly open: string;
  readonly show: (event: string) => void;
}) {
  if (spans.length === 0) return <Empty title="No work in this session yet" />;
  const first = Math.min(...spans.slice(0, 5000).map(({ from }) => from));
  const last = spans.reduce((max, { to, from }) => Math.max(max, to ?? from), first);
  const whole = Math.max(1, last - first);
  return (
    <Virtual
      count={spans.length}
      label="Spans of the session"
      row={(at, style) => {
        const { id, name, kind, tone, depth, from, to, note, event } = spans[at] as Span;
        const left = ((from - first) / whole) * 100;
        const width = Math.max(0, (((to ?? last) - from) / whole) * 100);
        return (
          <button
            type="button"
            key={id}
            class={`row span-row ${open === event ? 'selected' : ''}`}
            style={style}
            onClick={() => show(event)}
          >
            <span class="span-name" style={{ paddingLeft: `${depth * 14}px` }}>
              <Badge tone={tone}>{kind}</Badge>
              <span class="cut">
                <Line text={name} /> {note && <Line text={note} class="soft" />}
              </span>
            </span>
            <span class="track" title={visibleLine(note)}>
              <i
                class={`bar ${kind} ${tone}`}
                style={{ left: `${Math.min(99.5, left)}%`, width: `${Math.min(width, 100 - left)}%` }}
              />
            </span>
            <span class="optional soft">{to === undefined ? 'open' : to > from ? duration(to - from) : ''}</span>
          </button>
        );
      }}
    />
  );
}
