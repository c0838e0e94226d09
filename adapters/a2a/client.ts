/**
 * A remote A2A agent as an agent of this house. Reached when it is first needed and again when that failed; each session
 * of ours is one conversation there.
 */
import type { AgentBackend, Work } from '../../src/index.ts';
import { type A2aBackendConfig, type BackendDeps, peerSettingsOf } from './client-config.ts';
import { type Connection, connect } from './client-connect.ts';
import { createInbox } from './client-inbox.ts';
import { hand } from './client-run.ts';

export function a2aBackend(name: string, config: A2aBackendConfig, deps: BackendDeps): AgentBackend {
  const settings = peerSettingsOf(name, config);
  const contexts = new Map<string, string>();
  let reached: Promise<Connection> | undefined;

  function connection(): Promise<Connection> {
    const trying = reached ?? connect(settings, deps);
    reached = trying;
    trying.catch(() => {
      if (reached === trying) reached = undefined;
    });
    return trying;
  }

  /** The conversation so far is in the transcript: what the peer said there says what it called it. */
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
    // The peer keeps the task, and ours has a name it can be found by.
    abilities: { resume: true, evidence: 'observed', steer: true },
    about: { description: settings.description ?? `An agent at ${settings.base.host}, reached over A2A.` },
    async start(work, sink, signal) {
      const inbox = createInbox();
      const run = async () =>
        await hand({
          settings,
          deps,
          connection: await connection(),
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
  };
}
