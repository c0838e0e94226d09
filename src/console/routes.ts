/** The console's own routes, below /console/api: what the page shows and the public routes do not have. */
import type { ServerResponse } from 'node:http';
import { viewQuestion } from '../inbox/question-view.ts';
import type { Actor } from '../model/actions.ts';
import type { AskRecord } from '../model/asks.ts';
import type { CoreEvent } from '../model/events.ts';
import { asFault, Fault } from '../model/faults.ts';
import type { Skill } from '../model/resources.ts';
import type { JsonObject } from '../model/schema.ts';
import type { Bridge, Clock, Row } from '../ports/index.ts';
import { framesOf, MOST_RENDERED } from './frames.ts';
import { healthOf } from './health.ts';
import { ADMIN, absentIfHidden, holds, nothingHere, nothingIfHidden, requireAdmin } from './roles.ts';
import { ruleRoutes } from './rule-routes.ts';
import type { ConsoleServices } from './services.ts';

export interface ConsoleCall {
  readonly actor: Actor;
  readonly params: readonly string[];
  readonly body: unknown;
  /** For routes that answer in parts. */
  readonly response: ServerResponse;
}

export interface ConsoleRoute {
  readonly method: 'GET' | 'POST' | 'PUT';
  readonly path: RegExp;
  answer(call: ConsoleCall): Promise<object | 'answered'>;
}

export interface RouteDeps {
  readonly bridge: Bridge;
  readonly services: ConsoleServices;
  readonly clock: Clock;
}

export function createConsoleRoutes({ bridge, services, clock }: RouteDeps): readonly ConsoleRoute[] {
  return [
    {
      method: 'GET',
      path: /^\/approvals\/([\w.-]+)$/,
      async answer({ actor, params: [id = ''] }) {
        const ask = await bridge.view<AskRecord & Row>(actor, 'ask', id);
        const wanted = ask.state === 'open' && ask.kind === 'approval';
        const act = wanted ? await bridge.pendingAct(actor, id).catch(() => undefined) : undefined;
        return {
          ask: without(ask),
          view: viewQuestion(ask, act, clock.now()),
          arguments: act?.arguments ?? null,
          before: await askedBefore(actor, ask),
          taint: await taintOf(actor, ask.session_id),
        };
      },
    },
    {
      method: 'GET',
      path: /^\/tip$/,
      answer: async () => ({ cursor: (await services.tip()) ?? null }),
    },
    {
      method: 'GET',
      path: /^\/events\/([\w.-]+)$/,
      answer: async ({ actor, params: [id = ''] }) => await bridge.view<CoreEvent & Row>(actor, 'event', id),
    },
    {
      method: 'GET',
      path: /^\/events\/([\w.-]+)\/frames$/,
      answer: async ({ actor, params: [id = ''] }) => {
        const event = await bridge.view<CoreEvent & Row>(actor, 'event', id);
        const before = event.task_id
          ? bridge.events(actor, { stream: { of: 'task', id: event.task_id }, limit: MOST_RENDERED })
          : [];
        return { data: await framesOf(event, before, services.views()) };
      },
    },
    {
      method: 'GET',
      path: /^\/tasks\/([\w.-]+)\/log$/,
      async answer({ actor, params: [id = ''] }) {
        const events: CoreEvent[] = [];
        for await (const event of bridge.events(actor, { stream: { of: 'task', id } })) {
          if (events.push(event) > MOST_EVENTS)
            throw new Fault('conflict', 'the task has too many events to check here');
        }
        return { data: events };
      },
    },
    {
      // The public lists begin with the oldest.
      method: 'GET',
      path: /^\/newest\/(session|task|receipt)(?:\/([\w.-]+))?$/,
      async answer({ actor, params: [object = '', after] }) {
        if (after) await bridge.view(actor, object, after);
        const query = { object, limit: NEWEST, newestFirst: true, ...(after && { after }) };
        const { data, next } = await bridge.list<Row>(actor, query);
        return { data, next: next ?? null, ...(object === 'session' && { latest: await latestWork(actor, data) }) };
      },
    },
    {
      method: 'GET',
      path: /^\/catalog$/,
      async answer({ actor }) {
        const admin = holds(actor, ADMIN);
        return {
          doors: services.doors(),
          agents: await bridge.agents(actor).catch(nothingIfHidden),
          agent_addresses: await bridge.agentAddresses(actor).catch(nothingIfHidden),
          parts: services.parts(),
          servers: await bridge.servers(actor).catch(nothingIfHidden),
          server_states: await bridge.serverStates(actor).catch(nothingIfHidden),
          keys: admin ? await services.keys() : null,
        };
      },
    },
    {
      method: 'GET',
      path: /^\/health$/,
      answer: async ({ actor }) => ({ data: await healthOf(bridge, services, actor) }),
    },
    {
      method: 'GET',
      path: /^\/pins\/([\w.-]+)$/,
      async answer({ actor, params: [id = ''] }) {
        const pending = pendingOf(await bridge.view<Skill & Row>(actor, 'skill', id));
        return { stated_effect: pending ? services.statedEffect(pending) : null };
      },
    },
    {
      method: 'POST',
      path: /^\/pins\/([\w.-]+)$/,
      async answer({ actor, params: [id = ''], body }) {
        requireAdmin(actor);
        const { accept, version } = (body ?? {}) as { accept?: unknown; version?: unknown };
        const pin = await bridge.view<Skill & Row>(actor, 'skill', id);
        const pending = pendingOf(pin);
        // The definition that was looked at, and no later one.
        if (!pending || pending.version !== version) throw new Fault('conflict', 'the definition has changed again');
        // A refused definition stays beside the pin, so that it is not asked about again, and can still be accepted.
        const refused = { version: pending.version, by: actor.id, at: clock.now() };
        const change =
          accept === true
            ? services.acceptedPin(pending, actor.id)
            : { body: {}, metadata: { ...(pin.metadata as JsonObject), refused } };
        await bridge.submit({ kind: 'resource.update', actor, body: { object: 'skill', id, ...change } });
        return await bridge.view<Skill & Row>(actor, 'skill', id);
      },
    },
    {
      method: 'GET',
      path: /^\/proof(?:\/(\d{1,15}))?$/,
      async answer({ actor, params: [from] }) {
        requireReceipts(actor);
        return await services.proof(from === undefined ? undefined : Number(from));
      },
    },
    {
      method: 'GET',
      path: /^\/proof\/receipts\/([\w.-]+)$/,
      async answer({ actor, params: [id = ''] }) {
        // As hidden as the receipt itself.
        await bridge.view<Row>(actor, 'receipt', id);
        const { before, ...proof } = await services.inclusion(id);
        const shown = before && (await bridge.view<Row>(actor, 'receipt', before).catch(absentIfHidden));
        return { ...proof, before: shown ?? null };
      },
    },
    ...ruleRoutes(services.rules),
  ];

  /** The newest task of each of these sessions, among the newest of all of them. An id alone tells a reader nothing. */
  async function latestWork(actor: Actor, sessions: readonly Row[]): Promise<Readonly<Record<string, Row>>> {
    if (sessions.length === 0) return {};
    const where = { session_id: sessions.map(({ id }) => id) };
    const { data } = await bridge
      .list<Row & { readonly session_id: string }>(actor, {
        object: 'task',
        where,
        limit: LOOKED_AT,
        newestFirst: true,
      })
      .catch((thrown) => ({ data: nothingIfHidden(thrown) }));
    // The newest of a session is the last one put.
    return Object.fromEntries(data.toReversed().map((task) => [task.session_id, task]));
  }

  /** How earlier questions about the same tool ended, among the latest that this actor may see. */
  async function askedBefore(actor: Actor, { id, action }: AskRecord) {
    const where = { state: ['approved', 'denied'] };
    const { data, next } = await bridge.list<AskRecord & Row>(actor, {
      object: 'ask',
      where,
      limit: LOOKED_AT,
      newestFirst: true,
    });
    const same = data.filter(
      (ask) => ask.id !== id && ask.action.tool === action.tool && ask.action.server === action.server,
    );
    const approved = same.filter(({ state }) => state === 'approved').length;
    return { approved, denied: same.length - approved, more: next !== undefined };
  }

  /** Where untrusted content in this session came from. */
  async function taintOf(actor: Actor, session: string): Promise<readonly object[]> {
    const found: object[] = [];
    const range = { stream: { of: 'session', id: session }, kinds: ['vendor.tollbridge.tainted'], limit: 5 } as const;
    // A caller without the scope to read events is still shown the question.
    try {
      for await (const { payload } of bridge.events(actor, range)) found.push(payload);
    } catch (thrown) {
      if (asFault(thrown).kind === 'internal') throw thrown;
    }
    return found;
  }
}

/** The definition that a pinned tool has now, when it is no longer the pinned one. */
function pendingOf({ metadata }: Skill): (JsonObject & { readonly version: string }) | undefined {
  return (metadata as { pending?: JsonObject & { readonly version: string } }).pending;
}

/** Heads and proofs are hashes: they tell how many receipts there are, and nothing in them. */
function requireReceipts(actor: Actor): void {
  if (!holds(actor, 'receipts:read')) throw nothingHere();
}

const NEWEST = 100;
const LOOKED_AT = 200;
const MOST_EVENTS = 20_000;

function without({ metadata: _, ...ask }: AskRecord & Row): object {
  return ask;
}
