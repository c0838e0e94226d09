/** Small parts that every page uses. Text from agents, tools and files passes `visibleText` before it is drawn, and is drawn as text. */
import { type ComponentChildren, h, type VNode } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { lineKind, type Markup } from '../../inbox/question-markup.ts';
import { visibleLine, visibleText } from '../../model/values/visible-text.ts';
import { type Listed, type Newest, newest, type Task } from './api.ts';
import { Link } from './router.tsx';

export function Badge({ tone = '', children }: { readonly tone?: string; readonly children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{typeof children === 'string' ? visibleLine(children) : children}</span>;
}

export function Line({ text, class: name }: { readonly text: string; readonly class?: string }) {
  const shown = visibleLine(text);
  return name ? <span class={name}>{shown}</span> : shown;
}

/** Longer than anyone reads in a box; the rest is there on request. */
const LONGEST = 20_000;

/** A path by its last parts, with the whole of it on demand. */
export function FileName({ path, parts = 1 }: { readonly path: string; readonly parts?: number }) {
  const names = path.split(/[\\/]/).filter(Boolean);
  return (
    <span title={visibleLine(path)}>
      <Line text={names.length > parts ? `${parts > 1 ? '…/' : ''}${names.slice(-parts).join('/')}` : path} />
    </span>
  );
}

export function Block({ text, class: name = '' }: { readonly text: string; readonly class?: string }) {
  const [whole, setWhole] = useState(false);
  const cut = text.length > LONGEST && !whole;
  return (
    <>
      <pre class={name} tabIndex={0}>
        {visibleText(cut ? text.slice(0, LONGEST) : text)}
      </pre>
      {cut && (
        <button type="button" class="quiet" onClick={() => setWhole(true)}>
          Show all {text.length.toLocaleString('en')} characters
        </button>
      )}
    </>
  );
}

export function Json({ value }: { readonly value: unknown }) {
  return <Block text={JSON.stringify(value, undefined, 2) ?? 'null'} class="json" />;
}

/** A table that scrolls sideways by itself where it is wider than the page. Columns of numbers are the last ones. */
export function Table({
  columns,
  numbers = [],
  card = false,
  children,
}: {
  readonly columns: readonly string[];
  readonly numbers?: readonly string[];
  /** It stands on its own and not in a card. */
  readonly card?: boolean;
  readonly children: ComponentChildren;
}) {
  return (
    <div class={card ? 'card table-wrap' : 'table-wrap'} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {columns.map((name) => (
              <th key={name}>{name}</th>
            ))}
            {numbers.map((name) => (
              <th key={name} class="n">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

/** Lines of a change, each marked as added, removed or kept. */
export function Diff({ text }: { readonly text: string }) {
  const [most, setMost] = useState(400);
  const lines = text.split('\n');
  return (
    <>
      <pre class="diff" tabIndex={0}>
        {lines.slice(0, most).map((line, at) => (
          <span key={String(at)} class={lineKind(line)}>
            {`${at === 0 ? '' : '\n'}${visibleText(line.slice(0, 5000))}`}
          </span>
        ))}
      </pre>
      {lines.length > most && (
        <button type="button" class="quiet" onClick={() => setMost(most + 2000)}>
          Show more of {lines.length.toLocaleString('en')} lines
        </button>
      )}
    </>
  );
}

/** The parts of a question, as the page of a decision link has them too. */
export function Drawn({ parts }: { readonly parts: readonly Markup[] }): VNode {
  return <>{parts.map(drawn)}</>;
}

function drawn(part: Markup): ComponentChildren {
  if (typeof part === 'string') return part;
  const { tag, class: name, href, children } = part;
  const more = tag === 'pre' ? { tabIndex: 0 } : {};
  return h(
    tag,
    { ...(name && { class: name }), ...(href && { href, download: true }), ...more },
    ...children.map(drawn),
  );
}

export function Trouble({ thrown }: { readonly thrown: unknown }) {
  if (!thrown) return null;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return (
    <p class="trouble" role="alert">
      {visibleText(message)}
    </p>
  );
}

export function Empty({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children && <p>{children}</p>}
    </div>
  );
}

export function Title({
  children,
  note,
  actions,
}: {
  readonly children: ComponentChildren;
  readonly note?: ComponentChildren;
  readonly actions?: ComponentChildren;
}) {
  return (
    <header class="title">
      <h1>{children}</h1>
      {note && <p>{note}</p>}
      {actions && <div class="actions">{actions}</div>}
    </header>
  );
}

export interface Loaded<T> {
  readonly value: T | undefined;
  readonly error: unknown;
  readonly again: () => void;
}

/** Loads when `key` changes; an answer that comes after the next question is dropped. */
export function useLoad<T>(load: () => Promise<T>, key: string): Loaded<T> {
  const [state, setState] = useState<{ key: string; value?: T; error?: unknown }>({ key: '' });
  const [round, setRound] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  useEffect(() => {
    let current = true;
    latest
      .current()
      .then((value) => current && setState({ key, value }))
      .catch(
        (error) =>
          current &&
          setState((before) => ({
            ...(before.key === key && before.value !== undefined ? { value: before.value } : {}),
            key,
            error,
          })),
      );
    return () => {
      current = false;
    };
  }, [key, round]);
  const own = state.key === key;
  return {
    value: own ? state.value : undefined,
    error: own ? state.error : undefined,
    again: () => setRound((n) => n + 1),
  };
}

/** The newest of a kind, and older ones on request. */
export function useNewest<T>(object: Listed) {
  const { value, error } = useLoad(() => newest<T>(object), object);
  const [older, setOlder] = useState<readonly Newest<T>[]>([]);
  const [trouble, setTrouble] = useState<unknown>();
  const pages = value ? [value, ...older] : [];
  const next = pages.at(-1)?.next;
  return {
    loaded: value !== undefined,
    rows: pages.flatMap(({ data }) => data),
    latest: Object.assign({}, ...pages.map(({ latest }) => latest)) as Readonly<Record<string, Task>>,
    error: error ?? trouble,
    more: next ? () => void newest<T>(object, next).then((page) => setOlder([...older, page]), setTrouble) : undefined,
  };
}

/** Loads now and then; what was loaded last is shown meanwhile. */
export function usePolled<T>(load: () => Promise<T>, everyMs: number): Loaded<T> {
  const loaded = useLoad(load, 'polled');
  const again = useRef(loaded.again);
  again.current = loaded.again;
  useEffect(() => {
    const timer = setInterval(() => again.current(), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return loaded;
}

export function timeOf(at: number | string): string {
  const date = new Date(at);
  const two = (value: number) => String(value).padStart(2, '0');
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

export function dayAndTime(at: string | number): string {
  const date = new Date(at);
  const two = (value: number) => String(value).padStart(2, '0');
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${timeOf(at)}`;
}

export function duration(ms: number): string {
  if (!Number.isFinite(ms)) return '';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 90) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 90) return `${minutes} min`;
  const hours = Math.round(minutes / 60);
  return hours < 48 ? `${hours} h` : `${Math.round(hours / 24)} days`;
}

/** The time, drawn again each second while something counts down. */
export function useNow(everyMs = 1000): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

/** A letter pressed anywhere but in a field. */
export function useKeys(keys: Readonly<Record<string, () => void>>): void {
  const latest = useRef(keys);
  latest.current = keys;
  useLayoutEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.metaKey || event.ctrlKey || event.altKey) return;
      const target = event.target as HTMLElement | null;
      const typing = target && (/^(input|textarea|select)$/i.test(target.tagName) || target.isContentEditable);
      const action = latest.current[event.key];
      if (!action || (typing && event.key !== 'Escape')) return;
      event.preventDefault();
      action();
    };
    addEventListener('keydown', pressed);
    return () => removeEventListener('keydown', pressed);
  }, []);
}
export function Copy({ text, label = 'Copy' }: { readonly text: string; readonly label?: string }) {
  const [done, setDone] = useState(false);
  return (
    <button
      type="button"
      class="quiet"
      onClick={() => {
        void navigator.clipboard?.writeText(text).then(() => {
          setDone(true);
          setTimeout(() => setDone(false), 1500);
        });
      }}
    >
      {done ? 'Copied' : label}
    </button>
  );
}

/** A number in a table, with the rows that it was counted from behind it. */
export function Count({ to, value, text }: { readonly to: string; readonly value: number; readonly text?: string }) {
  return (
    <td class="n">
      {value === 0 ? <span class="soft">–</span> : <Link to={to}>{text ?? value.toLocaleString('en')}</Link>}
    </td>
  );
}
