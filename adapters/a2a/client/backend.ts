/**
 * A remote A2A agent as an agent of this gateway. The connection is made on first use and again after a failure; each of our
 * sessions is one context there.
 */
import type { About, AgentBackend, End, Sink, Work } from '../../../src/index.ts';
import { taskTrace } from '../../../src/transport/outbound/trace-context.ts';
import { type A2aBackendConfig, type BackendDeps, peerSettingsOf } from './config.ts';
import { NotKnown, NotReached } from './faults.ts';
import { createInbox, type Inbox } from './outgoing-messages.ts';
import { type Address, createAddresses } from './peer/addresses.ts';
import { tracedClient } from './peer/connect.ts';
import { createDescription } from './peer/description.ts';
import { createHooks } from './push-receiver.ts';
import { hand } from './run.ts';

interface Context {
  readonly id: string;
  readonly address: number;
}

export function a2aBackend(name: string, config: A2aBackendConfig, deps: BackendDeps): AgentBackend {
  const addresses = createAddresses(peerSettingsOf(name, config), deps);
  const { settings } = addresses.first;
  /** A context belongs to the address that gave it. */
  const contexts = new Map<string, Context>();
  const hooks = deps.http && createHooks(deps.http);

  const about: About = { description: settings.description ?? 'An agent elsewhere, reached over A2A.' };
  const describe = createDescription(settings, about, async () => {
    const [, { card }] = await addresses.reach(new Set(), { anew: true });
    return card;
  });

  /** The peer's messages in the transcript carry its context id. */
  async function contextOf({ session, transcript }: Work): Promise<Context | undefined> {
    const known = contexts.get(session.id);
    if (known) return known;
    for await (const { metadata } of transcript()) {
      const { a2a } = metadata as { a2a?: { peer?: string; context_id?: string; address?: number } };
      if (a2a?.peer === name && a2a.context_id)
        contexts.set(session.id, { id: a2a.context_id, address: a2a.address ?? 0 });
    }
    return contexts.get(session.id);
  }

  /** Hands the work over at one address; at the next one while it is certain that nobody has it. */
  async function handOver(work: Work, sink: Sink, signal: AbortSignal, inbox: Inbox): Promise<End> {
    const trace = taskTrace(work.task);
    const context = settings.several ? await contextOf(work) : undefined;
    const tried = new Set<Address>();
    for (;;) {
      const [address, connection] = await addresses.reach(tried, { preferred: context?.address });
      tried.add(address);
      const { index } = address.settings;
      try {
        return await hand({
          settings: address.settings,
          deps,
          hooks,
          connection: { ...connection, client: tracedClient(connection.client, trace) },
          work,
          sink,
          signal,
          inbox,
          elsewhere: tried.size < addresses.count,
          contextId: async () => {
            const known = await contextOf(work);
            return known?.address === index ? known.id : undefined;
          },
          gotContext: (id) => contexts.set(work.session.id, { id, address: index }),
        });
      } catch (cause) {
        if (cause instanceof NotReached && !signal.aborted) addresses.failed(address, cause);
        else if (!(cause instanceof NotKnown)) throw cause;
        if (tried.size === addresses.count) throw cause;
      }
    }
  }

  return {
    name,
    // The peer keeps the task, and ours has an id it can be found by.
    abilities: { resume: true, evidence: 'observed', steer: true },
    about,
    describe,
    addresses: addresses.states,
    async start(work, sink, signal) {
      const inbox = createInbox();
      return { done: handOver(work, sink, signal, inbox), steer: inbox.put };
    },
    async release(sessionId) {
      contexts.delete(sessionId);
    },
    async close() {
      hooks?.close();
    },
  };
}
