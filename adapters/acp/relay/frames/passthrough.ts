/**
 * Calls without a canonical meaning. They are gated as extensions, recorded by name and hash, and forwarded unchanged; an
 * unknown call is the common case and never our error.
 */
import { type Actor, asFault, type Bridge, Fault, type JsonObject, type Logger } from '../../../../src/index.ts';
import { textOf } from '../../shapes.ts';
import type { SessionKey, SessionKeys } from '../from-editor/session-keys.ts';
import { type Notification, paramsOf, type Request } from './frame.ts';

export interface Passing {
  /** Resolves once the frame may be forwarded; rejects when policy denies it or cannot be asked. */
  pass(frame: Request | Notification, actor: Actor): Promise<void>;
  /** Records a frame that was already forwarded, because it has no effect. */
  note(frame: Request | Notification, actor: Actor, ext?: JsonObject): Promise<void>;
}

export interface PassingDeps {
  readonly bridge: Bridge;
  readonly sessionKeys: SessionKeys;
  readonly log: Logger;
  readonly cwd: string;
}

export function createPassing({ bridge, sessionKeys, log, cwd }: PassingDeps): Passing {
  async function submit(frame: Request | Notification, actor: Actor, ext?: JsonObject): Promise<void> {
    const params = paramsOf(frame);
    const sessionKey: SessionKey | undefined = sessionKeys.known(textOf(params.sessionId) ?? '');
    const workspace_id = sessionKey?.workspaceId ?? (await sessionKeys.workspace(cwd));
    const body = {
      protocol: 'acp',
      method: frame.method,
      params,
      workspace_id,
      session_id: sessionKey?.sessionId ?? null,
    };
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
