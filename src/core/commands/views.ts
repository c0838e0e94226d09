/** Resources as doors see them: projections, completed with counts and lookups at the moment of reading. */
import type { Actor } from '../../model/actions.ts';
import type { CoreEvent, Cursor } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import type { Artifact, ReceiptResource, Session, Task } from '../../model/resources.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import { own } from '../../model/values/own.ts';
import { RECEIPT_SCHEMA } from '../../model/words.ts';
import type { Bridge, EventStream, ListQuery, Row, Store, StoredReceipt } from '../../ports/index.ts';
import { type Access, isPrivate, type ResourceOwner, requireReadScope, seesOthers } from '../access.ts';
import { bindingId } from '../events/projections/resources.ts';
import type { Binding, Tally } from '../events/rows.ts';
import { type Sight, shownEvent, shownRow, sightOf } from '../events/visibility.ts';
import { visibleEvents } from '../events/visible-events.ts';

export function createViews({
  store,
  access,
}: {
  readonly store: Store;
  readonly access: Access;
}): Pick<Bridge, 'view' | 'list' | 'bytes' | 'bound' | 'events' | 'follow' | 'firstMissing'> {
  async function complete<T extends Row>(row: T, sight: Sight): Promise<T> {
    if (isSession(row)) return await completeSession(store, row);
    return shownRow(isArtifact(row) ? await covered(store, row) : row, sight);
  }

  async function viewReceipt(actor: Actor, id: string): Promise<ReceiptResource & Row> {
    const stored = await store.receipt(id);
    if (!stored || !(await access.locationVisible(actor, receiptLocation(stored)))) {
      throw new Fault('not_found', `no receipt ${id}`);
    }
    return receiptResource(stored);
  }

  async function viewEvent(actor: Actor, id: string): Promise<CoreEvent> {
    const event = await store.event(id);
    if (!event || !(await access.locationVisible(actor, event))) throw new Fault('not_found', `no event ${id}`);
    return shownEvent(withCursor(event), sightOf(actor));
  }

  return {
    async view<T extends Row>(actor: Actor, object: string, id: string): Promise<T> {
      if (isPrivate(object)) throw new Fault('not_found', `no ${object} ${id}`);
      requireReadScope(actor, object);
      if (object === 'receipt') return (await viewReceipt(actor, id)) as Row as T;
      if (object === 'event') return (await viewEvent(actor, id)) as Row as T;
      return await complete(await access.see<T>(actor, object, id), sightOf(actor));
    },

    async list<T extends Row>(actor: Actor, query: ListQuery) {
      if (isPrivate(query.object)) throw new Fault('not_found', `no ${query.object} list`);
      requireReadScope(actor, query.object);
      const limit = query.limit ?? 50;
      if (query.object === 'receipt')
        return (await listReceipts(actor, query, limit)) as { data: Row[]; next: string | undefined } as {
          data: T[];
          next: string | undefined;
        };
      const data: T[] = [];
      const sight = sightOf(actor);
      let after = query.after;
      // Hidden rows do not shorten a page: reading continues until the page is full or the list ends.
      for (;;) {
        const { rows, last, more } = await pageOf<T>(actor, { ...query, limit: limit + 1, ...(after && { after }) });
        for (const row of rows) {
          if (data.length === limit) return { data, next: data.at(-1)?.id };
          if (await access.visible(actor, row)) data.push(await complete(row, sight));
        }
        if (!more) return { data, next: undefined };
        after = last;
      }
    },

    async bytes(actor, artifactId, range) {
      const artifact = await access.seeContent(actor, artifactId);
      // A hash alone gives no access to bytes: they must have been uploaded for this artifact.
      const kept = artifact.sha256 && typeof artifact.metadata.bytes === 'number';
      const bytes = kept ? await store.blob(artifact.sha256 as string, range) : undefined;
      if (!bytes) throw new Fault('conflict', `the content of artifact ${artifactId} is not kept here`);
      return bytes;
    },

    async bound(protocol, scope, wireId) {
      return (await store.get<Binding>('binding', bindingId(protocol, scope, wireId)))?.to;
    },

    async *events(actor, range) {
      requireReadScope(actor, 'event');
      const mine = await access.streamFilter(actor, range.stream);
      let left = range.limit ?? Number.POSITIVE_INFINITY;
      const { limit: _, ...all } = range;
      const sight = sightOf(actor);
      for await (const event of (await visibleEvents(store, access, actor, all)) ?? store.read(all)) {
        if (mine && !(await mine(event))) continue;
        if (left-- <= 0) return;
        yield shownEvent(withCursor(event), sight);
      }
    },

    follow(actor, from, signal) {
      return opened(async () => {
        requireReadScope(actor, 'event');
        const mine = await access.streamFilter(actor, from.stream);
        const events = store.follow(from, signal);
        return mine ? chosen(events, mine) : events;
      }, sightOf(actor));
    },

    async firstMissing(actor, stream) {
      requireReadScope(actor, 'event');
      await access.streamFilter(actor, stream);
      return await store.firstMissing(stream);
    },
  };

  /** Sessions of one owner are found by an index on the owner: other principals' sessions cost nothing. */
  async function pageOf<T extends Row>(actor: Actor, query: ListQuery & { readonly limit: number }) {
    if (query.object !== 'session' || seesOthers(actor)) {
      const rows = await store.list<T>(query);
      return { rows, last: rows.at(-1)?.id, more: rows.length === query.limit };
    }
    const { where, ...page } = query;
    const owner_id = [actor.id, ...(actor.on_behalf_of ? [actor.on_behalf_of] : [])];
    const owned = await store.list<Row>({ ...page, object: 'owner', where: { owner_id } });
    const rows: T[] = [];
    for (const { id } of owned) {
      const row = await store.get<T>('session', id);
      if (row && fits(row, where)) rows.push(row);
    }
    return { rows, last: owned.at(-1)?.id, more: owned.length === query.limit };
  }

  async function listReceipts(actor: Actor, { where, after, newestFirst }: ListQuery, limit: number) {
    const task = typeof where?.task_id === 'string' ? where.task_id : undefined;
    const chain = typeof where?.workspace_id === 'string' ? where.workspace_id : undefined;
    const data: (ReceiptResource & Row)[] = [];
    if (newestFirst) {
      // Positions count from 0 without a gap, so the newest ones are read from the size of the tree down.
      let above = after ? ((await store.receipt(after))?.position ?? 0) : (await store.tree()).size;
      while (above > 0) {
        const from = Math.max(0, above - limit - 1);
        const page = await store.receipts({
          after: from - 1,
          limit: above - from,
          ...(task && { task }),
          ...(chain && { chain }),
        });
        for (const stored of page.toReversed()) {
          if (stored.position >= above) continue;
          if (data.length === limit) return { data, next: data.at(-1)?.id };
          if (await access.locationVisible(actor, receiptLocation(stored))) data.push(receiptResource(stored));
        }
        above = from;
      }
      return { data, next: undefined };
    }
    let position = after ? (await store.receipt(after))?.position : undefined;
    for (;;) {
      const page = await store.receipts({
        limit: limit + 1,
        ...(position !== undefined && { after: position }),
        ...(task && { task }),
        ...(chain && { chain }),
      });
      for (const stored of page) {
        if (data.length === limit) return { data, next: data.at(-1)?.id };
        if (await access.locationVisible(actor, receiptLocation(stored))) data.push(receiptResource(stored));
        position = stored.position;
      }
      if (page.length <= limit) return { data, next: undefined };
    }
  }
}

/** Rows of this kind are sessions: nothing else is stored under the name. */
function isSession<T extends Row>(row: T): row is T & Session {
  return row.object === 'session';
}
function isArtifact<T extends Row>(row: T): row is T & Artifact {
  return row.object === 'artifact';
}

function fits(row: Row, where: ListQuery['where'] = {}): boolean {
  const members: JsonObject = row;
  return Object.entries(where).every(([name, wanted]) => [wanted].flat().includes(own(members, name) as string));
}

/**
 * An artifact of an ended task is covered by that task's receipt, which is looked up rather than written into each artifact. An
 * artifact created after the end has `receipt_id: null` itself: the receipt was sealed without it.
 */
async function covered<T extends Artifact & Row>(store: Pick<Store, 'get'>, artifact: T): Promise<T> {
  if (artifact.receipt_id !== undefined || !artifact.task_id) return artifact;
  const task = await store.get<Task & Row>('task', artifact.task_id);
  return { ...artifact, receipt_id: task?.receipt_id ?? null };
}

/** A session with its current counts, which are a separate row so that a message does not rewrite the session. */
export async function completeSession<T extends Session & Row>(
  store: Pick<Store, 'get' | 'tip' | 'event'>,
  session: T,
): Promise<T> {
  const [tally, last] = await Promise.all([
    store.get<Tally>('tally', session.id),
    store.tip({ of: 'session', id: session.id }),
  ]);
  // Every event in a session updates it; its counts remain when its events are pruned.
  const newest = last === undefined ? undefined : await store.event(last);
  const times = [session.updated_at, tally?.updated_at ?? '', newest?.created_at ?? ''];
  const updated_at = times.toSorted().at(-1) as string;
  return counted({ ...session, updated_at }, tally, last);
}

/** A session that this actor may see, completed. */
export async function seenSession(
  { store, access }: { readonly store: Store; readonly access: Access },
  actor: Actor,
  id: string,
): Promise<Session & Row> {
  return await completeSession(store, await access.see<Session & Row>(actor, 'session', id));
}

/** A session without later events: the event that opened it holds its whole state. */
export function newSession({ id, created_at, payload }: CoreEvent<'session.created'>): Session & Row {
  const { session } = payload;
  return counted({ ...session, updated_at: created_at }, undefined, id);
}

function counted<T extends Session & Row>(session: T, tally: Tally | undefined, last: Cursor | undefined): T {
  const fixed = session.state === 'CLOSED' || session.state === 'FAILED' || session.state === 'PAUSED';
  return {
    ...session,
    state: fixed ? session.state : (tally?.open_tasks ?? 0) > 0 ? 'ACTIVE' : 'IDLE',
    last_event_id: last ?? null,
    transcript: {
      message_count: tally?.messages ?? 0,
      turn_count: tally?.messages ?? 0,
      tip_message_id: tally?.tip_message_id ?? null,
      compacted: tally?.compacted_through != null,
      compacted_through: tally?.compacted_through ?? null,
    },
  };
}

/** Opened with the first `next`. Not a generator, which would cost every event of every follower several extra microtasks. */
function opened(open: () => Promise<EventStream>, sight: Sight): AsyncIterableIterator<CoreEvent> & EventStream {
  const shown = (look: IteratorResult<CoreEvent>) => showing(look, sight);
  let opening: Promise<AsyncIterator<CoreEvent>> | undefined;
  let stream: EventStream | undefined;
  let source: AsyncIterator<CoreEvent> | undefined;
  let over = false;
  const begin = async () => {
    stream = await open();
    source = stream[Symbol.asyncIterator]();
    return source;
  };
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next() {
      if (over) return Promise.resolve(OVER);
      if (source) return source.next().then(shown);
      opening ??= begin();
      return opening.then((events) => events.next()).then(shown);
    },
    ready() {
      const event = over ? undefined : stream?.ready?.();
      return event && shownAt(event, sight);
    },
    async return() {
      over = true;
      // A reader that returns while the stream is being opened must not leave it open.
      const events = source ?? (await opening?.catch(() => undefined));
      await events?.return?.();
      return OVER;
    },
  };
}
const OVER: IteratorReturnResult<undefined> = { value: undefined, done: true };

function showing(look: IteratorResult<CoreEvent>, sight: Sight): IteratorResult<CoreEvent> {
  if (look.done) return look;
  const value = shownAt(look.value, sight);
  return value === look.value ? look : { value, done: false };
}

function shownAt(event: CoreEvent, sight: Sight): CoreEvent {
  return shownEvent(event.replay ? withCursor(event) : event, sight);
}

async function* chosen(events: AsyncIterable<CoreEvent>, mine: (event: CoreEvent) => Promise<boolean>) {
  for await (const event of events) if (await mine(event)) yield event;
}

/** A replay's events have new ids, so the client's cursor is the new one. */
function withCursor(event: CoreEvent): CoreEvent {
  return event.replay && !event.replay.replay_cursor
    ? { ...event, replay: { ...event.replay, replay_cursor: event.id } }
    : event;
}

/** The workspace and session of the work that a receipt accounts for. */
export function receiptLocation({ receipt: { identifiers } }: StoredReceipt): ResourceOwner {
  return { workspace_id: identifiers.workspace_ref, session_id: identifiers.session_id };
}

/** The document with its envelope. The hash covers the document alone, so it is carried unchanged. */
export function receiptResource({ receipt }: StoredReceipt): ReceiptResource & Row {
  const calls = receipt.side_effects.tool_calls.length;
  const { final_state } = receipt.lifecycle;
  return {
    id: receipt.receipt_id,
    object: 'receipt',
    created_at: receipt.issued_at,
    updated_at: receipt.issued_at,
    metadata: {},
    subject: receipt.subject,
    format: RECEIPT_SCHEMA,
    summary: `${receipt.subject.object} ${final_state}: ${calls} tool calls, ${receipt.cost.total} ${receipt.cost.currency}`,
    issued_at: receipt.issued_at,
    issuer: receipt.issuer.id,
    wire: {
      schema_version: RECEIPT_SCHEMA,
      subject: receipt.subject,
      issued_at: receipt.issued_at,
      payload: receipt,
      signature: signatureOf(receipt.signatures?.[0]),
    } as JsonObject,
    verification: null,
  };
}

function signatureOf(signature: { key_id: string; algorithm: string; signature: string } | undefined): Json {
  return signature ? { algorithm: signature.algorithm, key_id: signature.key_id, value: signature.signature } : null;
}
