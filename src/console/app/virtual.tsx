/** A list that draws only the rows in sight, however many there are. Rows have one height; the newest is on top. */
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

const ROW = 30;
const SPARE = 12;

interface VirtualProps {
  readonly count: number;
  /** Draws row `at`, counted from the top. */
  readonly row: (at: number, style: { top: string }) => ComponentChildren;
  readonly label: string;
  /** Rows are added on top, and what is in sight stays in sight; not where this changes, because then the list is another one. */
  readonly growsOnTop?: string | undefined;
  readonly onEnd?: () => void;
}

export function Virtual({ count, row, label, growsOnTop, onEnd }: VirtualProps) {
  const box = useRef<HTMLElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const before = useRef({ count, growsOnTop });

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
    const added = growsOnTop === before.current.growsOnTop ? count - before.current.count : 0;
    before.current = { count, growsOnTop };
    const element = box.current;
    if (growsOnTop !== undefined && element && added > 0 && element.scrollTop > ROW) element.scrollTop += added * ROW;
  }, [count, growsOnTop]);

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
      <div class="list-inner" style={{ height: `${count * ROW}px` }}>
        {shown}
      </div>
    </section>
  );
}
