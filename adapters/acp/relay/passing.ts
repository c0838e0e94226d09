/**
 * Calls nobody here has words for. They are gated as extensions, written down by name and hash, and carried as they are;
 * unknown is the common case, and never an error of ours.
 */
import { type Actor, asFault, type Bridge, Fault, type JsonObject, type Logger } from '../../../src/index.ts';
import { textOf } from '../shapes.ts';
import { type Notification, paramsOf, type Request } from './frame.ts';
import type { Place, Places } from './places.ts';

export interface Passing {
  /** Resolves once it may go on; rejects when policy says no or cannot be asked. */
  pass(frame: Request | Notification, actor: Actor): Promise<void>;
  /** For what went on already, because it has no effect on the world. */
  note(frame: Request | Notification, actor: Actor, ext?: JsonObject): Promise<void>;
}

export interface PassingDeps {
  readonly bridge: Bridge;
  readonly places: Places;
  readonly log: Logger;
  readonly cwd: string;
}

export function createPassing({ bridge, places, log, cwd }: PassingDeps): Passing {
  async function submit(frame: Request | Notification, actor: Actor, ext?: JsonObject): Promise<void> {
    const params = paramsOf(frame);
    const place: Place | undefined = places.known(textOf(params.sessionId) ?? '');
    const workspace_id = place?.workspaceId ?? (await places.workspace(cwd));
    const body = { protocol: 'acp', method: frame.method, params, workspace_id, session_id: place?.sessionId ?? null };
    const { decision } = await bridge.submit({ kind: 'passthrough', actor, body, ...(ext && { ext }) });
    if (decision && decision.verdict !== 'allow') throw new Fault('policy_violation', decision.reason);
  }

  return {
    pass: (frame, actor) => submit(frame, actor),
    async note(frame, actor, ext) {
      await submit(frame, actor, ext).catch((cause) =>
        log.warn({ err: asFault(cause), method: frame.method }, 'something that passed could not be written down'),
      );
    },
  };
}
