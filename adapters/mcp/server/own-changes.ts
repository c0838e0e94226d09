/**
 * Announces, at an address that serves one server, the list changes that the gateway causes. The visible tools depend on rules and
 * on definitions that an operator has to accept; when they change, clients that were shown other tools are notified on the server's
 * behalf, if the server has declared `listChanged`.
 */
import { META } from '../../../mappings/mcp.ts';
import { type Bridge, isObject, type JsonObject, type Logger } from '../../../src/index.ts';
import { type FrameOutcome, type Id, type Notice, notice } from '../frames.ts';
import type { SessionContext } from '../request-context.ts';
import type { Caller } from './caller.ts';
import { createListChanges } from './list-changes.ts';

export interface OwnChanges {
  /** A session has begun, with this answer of the server to `initialize`. */
  opened(outcome: FrameOutcome, caller: Caller): void;
  /** A caller was shown the tools with these names. */
  shown(names: readonly string[], caller: Caller): void;
  /** A modern client listens to the server: its notifications pass through here, and ours are added to them. */
  listen(id: Id, params: JsonObject, caller: Caller, said: Said): Promise<{ readonly said: Said; stop(): void }>;
  close(): void;
}
type Said = (notice: Notice) => void;

export interface OwnChangesParts {
  readonly bridge: Bridge;
  readonly log: Logger;
  /** Names of this server's tools that the caller would be shown now. */
  readonly names: (caller: Caller) => Promise<readonly string[]>;
}

const LIST = 'tools/list';

export function createOwnChanges({ bridge, log, names }: OwnChangesParts): OwnChanges {
  const notifying = new WeakSet<SessionContext>();
  const changes = createListChanges({
    bridge,
    log,
    show: (method, caller) => (method === LIST ? names(caller).then(changed) : undefined),
    // The server announces its own changes itself.
    servers: false,
  });

  return {
    opened(outcome, { session }) {
      const { capabilities } = 'result' in outcome ? outcome.result : {};
      const tools = isObject(capabilities) ? capabilities.tools : undefined;
      if (session && isObject(tools) && tools.listChanged === true) notifying.add(session);
    },
    shown(shown, caller) {
      if (caller.session && notifying.has(caller.session)) changes.shown(LIST, changed(shown), caller);
    },
    async listen(id, { notifications }, caller, said) {
      const { toolsListChanged } = isObject(notifications) ? notifications : {};
      // Nothing is sent before the server has acknowledged the subscription, and only what it grants.
      let granted = false;
      const add = ({ method }: Notice) => {
        if (granted) said(notice(method, { _meta: { [META.subscription]: id } }));
      };
      const stop = await changes.listen({ ...(toolsListChanged === true && { toolsListChanged }) }, caller, add);
      return {
        stop,
        said(notice) {
          const { notifications: wishes } = notice.params ?? {};
          if (notice.method === ACKNOWLEDGED) granted = isObject(wishes) && wishes.toolsListChanged === true;
          said(notice);
        },
      };
    },
    close: () => changes.close(),
  };
}

const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';

function changed(names: readonly string[]): FrameOutcome {
  return { result: { tools: names.toSorted() } };
}
