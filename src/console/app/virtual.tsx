/** A list that draws only the rows in sight, however many there are. Rows have one height; the newest is on top. */
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

const ROW = 30;
const SPARE = 12;

export interface GrowsOnTop {
  /** Another name is another list: nothing of the one before is looked for in it. */
  readonly list: string;
  /** The row on top; undefined in an empty list. */
  readonly first: string | undefined;
  /** How many rows are above this one now. */
  readonly above: (row: string) => number;
}

interface VirtualProps {
  readonly count: number;
  /** Draws row `at`, counted from the top. */
  readonly row: (at: number, style: { top: string }) => ComponentChildren;
  readonly label: string;
  /** Names of the columns, which stay in sight. */
  readonly head?: ComponentChildren;
  /** Rows are added on top, and what is in sight stays in sight. */
  readonly growsOnTop?: GrowsOnTop | undefined;
  readonly onEnd?: () => void;
}

export function Virtual({ count, row, label, head, growsOnTop, onEnd }: VirtualProps) {
  const box = useRef<HTMLElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const before = useRef(growsOnTop);

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const measure = () => setHeight(element.clientHeight || 600);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  useLayoutEffect(() => {
    const last = before.current;
    before.current = growsOnTop;
    const element = box.current;
    if (!growsOnTop || !element || last?.list !== growsOnTop.list || last.first === undefined) return;
    const added = growsOnTop.above(last.first);
    if (added > 0 && element.scrollTop > ROW) element.scrollTop += added * ROW;
  }, [growsOnTop?.list, growsOnTop?.first]);

  const first = Math.max(0, Math.floor(top / ROW) - SPARE);
  const last = Math.min(count, Math.ceil((top + height) / ROW) + SPARE);
  useEffect(() => {
    if (count > 0 && last >= count) onEnd?.();
  }, [last >= count]);

  const shown: ComponentChildren[] = [];
  for (let at = first; at < last; at += 1) shown.push(row(at, { top: `${at * ROW}px` }));
  return (
    <section
      class="list"
      ref={box}
      aria-label={label}
      tabIndex={0}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
      data-count={count}
    >
      {head && <div class="list-head">{head}</div>}
      <div class="list-inner" style={{ height: `${count * ROW}px` }}>
        {shown}
      </div>
    </section>
  );
}
