/** Events as rows, of which only those in sight are drawn. */
import type { EventRow } from '../../rows.ts';
import { Badge, Line, timeOf } from '../../ui.tsx';
import { type GrowsOnTop, Virtual } from '../../virtual.tsx';

interface EventListProps {
  readonly count: number;
  /** The row at this place, counted from the top. */
  readonly at: (index: number) => EventRow;
  readonly label: string;
  readonly growsOnTop?: GrowsOnTop;
  /** Id of the event that is shown beside the list; empty for none. */
  readonly open: string;
  readonly show: (id: string) => void;
}

export function EventList({ count, at, label, growsOnTop, open, show }: EventListProps) {
  return (
    <Virtual
      count={count}
      label={label}
      head={
        <>
          <span>Time</span>
          <span>Event</span>
          <span class="optional">By</span>
          <span class="optional">Door or server</span>
          <span>What</span>
          <span class="optional">Rule</span>
        </>
      }
      growsOnTop={growsOnTop}
      row={(index, style) => {
        const row = at(index);
        return (
          <ActivityRow key={row.id} row={row} style={style} selected={row.id === open} open={() => show(row.id)} />
        );
      }}
    />
  );
}

interface RowProps {
  readonly row: EventRow;
  readonly style: { readonly top: string };
  readonly selected: boolean;
  readonly open: () => void;
}

function ActivityRow({ row, style, selected, open }: RowProps) {
  return (
    <button type="button" class={`row ${selected ? 'selected' : ''}`} style={style} onClick={open} data-id={row.id}>
      <span class="time">{timeOf(row.at)}</span>
      <span>
        <Badge tone={row.tone}>{row.word}</Badge>
      </span>
      <span class="optional">
        <Line text={row.agent || row.person} />
      </span>
      <span class="optional soft">
        <Line text={row.door || row.server} />
      </span>
      <span>{row.text}</span>
      <span class="optional soft">
        <Line text={row.rule} />
      </span>
    </button>
  );
}
