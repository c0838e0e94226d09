/** The approvals that wait, oldest first: read once, then kept up to date by the events that open and close them. */
import { useEffect, useReducer } from 'preact/hooks';
import { all, call } from '../api.ts';
import { bag, type LogEvent, str } from '../rows.ts';
import { feed } from './feed.ts';

export interface Waiting {
  readonly id: string;
  readonly created_at: string;
  readonly expires_at: string;
  readonly session_id: string | null;
  readonly task_id: string | null;
  readonly action: Readonly<Record<string, unknown>>;
  readonly request: Readonly<Record<string, unknown>>;
}

/** How an approval that was here ended. */
export interface Ended {
  readonly state: string;
  readonly by: string;
  readonly at: string;
  readonly reason: string;
}

/** More than these at once are read as the list. */
const MOST_SINGLE = 10;

class WaitingList {
  list: readonly Waiting[] = [];
  readonly ended = new Map<string, Ended>();
  loaded = false;
  /** Opened while the list was being read: what was answered may not have them. */
  private readonly early = new Set<string>();
  private readonly listeners = new Set<() => void>();
  private readonly opened = new Set<(ask: Waiting) => void>();
  private leave: (() => void) | undefined;

  async start(): Promise<void> {
    this.leave?.();
    this.leave = feed.onEvents((events) => this.received(events));
    await this.refresh();
  }

  end(): void {
    this.leave?.();
    this.list = [];
    this.early.clear();
    this.loaded = false;
  }

  async refresh(): Promise<void> {
    const found = await all<Waiting>('/v1/permission-requests?status=pending');
    const known = new Map([...this.list, ...found].map((one) => [one.id, one]));
    this.list = [...known.values()].filter(({ id }) => !this.ended.has(id)).sort(byAge);
    this.loaded = true;
    for (const id of this.missing(this.early)) void this.add(id);
    this.early.clear();
    this.changed();
  }

  private received(events: readonly LogEvent[]): void {
    let changed = false;
    const opened = new Set<string>();
    for (const { event, payload, created_at } of events) {
      if (event === 'vendor.tollbridge.ask_opened') {
        opened.add(str(bag(payload.ask).id));
      }
      if (event === 'vendor.tollbridge.ask_closed') {
        const id = str(payload.ask_id);
        const at = str(payload.at) || created_at;
        this.ended.set(id, { state: str(payload.state), by: str(payload.by), at, reason: str(payload.reason) });
        this.list = this.list.filter((one) => one.id !== id);
        changed = true;
      }
    }
    const missing = this.missing(opened);
    if (!this.loaded) for (const id of missing) this.early.add(id);
    else if (missing.length > MOST_SINGLE) void this.refresh();
    else for (const id of missing) void this.add(id);
    if (changed) this.changed();
  }

  private missing(opened: Iterable<string>): readonly string[] {
    const known = new Set(this.list.map(({ id }) => id));
    return [...opened].filter((id) => !known.has(id) && !this.ended.has(id));
  }

  private async add(id: string): Promise<void> {
    const ask = await call<Waiting & { status: string }>(`/v1/permission-requests/${id}`).catch(() => undefined);
    if (ask?.status !== 'pending' || this.ended.has(id) || this.list.some((one) => one.id === id)) return;
    this.list = [...this.list, ask].sort(byAge);
    for (const listener of this.opened) listener(ask);
    this.changed();
  }

  private changed(): void {
    for (const listener of this.listeners) listener();
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  onOpened(listener: (ask: Waiting) => void): () => void {
    this.opened.add(listener);
    return () => this.opened.delete(listener);
  }
}

function byAge(a: Waiting, b: Waiting): number {
  return a.created_at < b.created_at ? -1 : a.created_at > b.created_at ? 1 : a.id < b.id ? -1 : 1;
}

export const waiting = new WaitingList();

export function useWaiting(): WaitingList {
  const [, redraw] = useReducer((count: number, _: undefined) => count + 1, 0);
  useEffect(() => waiting.subscribe(() => redraw(undefined)), []);
  return waiting;
}
