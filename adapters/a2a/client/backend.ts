/**
 * A remote A2A agent as an agent of this gateway. The connection is made on first use and again after a failure; each of our
 * sessions is one context there.
 */
import type { About, AgentBackend, Work } from '../../../src/index.ts';
import { taskTrace } from '../../../src/transport/outbound/trace-context.ts';
import { type A2aBackendConfig, type BackendDeps, peerSettingsOf } from './config.ts';
import { type Connection, connect, tracedClient } from './connect.ts';
import { createDescription } from './description.ts';
import { createInbox } from './outgoing-messages.ts';
import { createHooks } from './push-receiver.ts';
import { hand } from './run.ts';

export function a2aBackend(name: string, config: A2aBackendConfig, deps: BackendDeps): AgentBackend {
  const settings = peerSettingsOf(name, config);
  const contexts = new Map<string, string>();
  const hooks = deps.http && createHooks(deps.http);
  let reached: Promise<Connection> | undefined;

  function connection(): Promise<Connection> {
    const trying = reached ?? connect(settings, deps);
    reached = trying;
    trying.catch(() => {
      if (reached === trying) reached = undefined;
    });
    return trying;
  }

  const about: About = { description: settings.description ?? 'An agent elsewhere, reached over A2A.' };
  const describe = createDescription(settings, about, async () => {
    reached = undefined;
    return (await connection()).card;
  });

  /** The peer's messages in the transcript carry its context id. */
  async function contextOf({ session, transcript }: Work): Promise<string | undefined> {
    const known = contexts.get(session.id);
    if (known) return known;
    for await (const { metadata } of transcript()) {
      const { a2a } = metadata as { a2a?: { peer?: string; context_id?: string } };
      if (a2a?.peer === name && a2a.context_id) contexts.set(session.id, a2a.context_id);
    }
    return contexts.get(session.id);
  }

  return {
    name,
    // The peer keeps the task, and ours has an id it can be found by.
    abilities: { resume: true, evidence: 'observed', steer: true },
    about,
    describe,
    async start(work, sink, signal) {
      const inbox = createInbox();
      const trace = taskTrace(work.task);
      const traced = (reached: Connection) => ({ ...reached, client: tracedClient(reached.client, trace) });
      const run = async () =>
        await hand({
          settings,
          deps,
          hooks,
          connection: traced(await connection()),
          work,
          sink,
          signal,
          inbox,
          contextId: () => contextOf(work),
          gotContext: (contextId) => contexts.set(work.session.id, contextId),
        });
      return { done: run(), steer: inbox.put };
    },
    async release(sessionId) {
      contexts.delete(sessionId);
    },
    async close() {
      hooks?.close();
    },
  };
}
