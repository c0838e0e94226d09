/**
 * At an address that stands for one server: what changes there by our doing and not by the server's. Which of its tools are shown
 * depends on rules and on definitions somebody has to accept; when that changes, whoever was shown others is told in the server's
 * place, where the server has said that such a thing is told.
 */
import { META } from '../../mappings/mcp.ts';
import type { Bridge, JsonObject, Logger } from '../../src/index.ts';
import type { Caller } from './caller.ts';
import { type Id, isObject, type Notice, notice, type Outcome } from './frames.ts';
import type { SessionLine } from './line.ts';
import { createListChanges } from './list-changes.ts';

export interface OwnChanges {
  /** A session has begun, with what the server says of itself. */
  opened(outcome: Outcome, caller: Caller): void;
  /** A caller was shown the tools of these names. */
  shown(names: readonly string[], caller: Caller): void;
  /** Somebody of the modern era listens to the server: what they are told goes through here, and what we have to add comes with it. */
  listen(id: Id, params: JsonObject, caller: Caller, said: Said): Promise<{ readonly said: Said; stop(): void }>;
  close(): void;
}
type Said = (heard: Notice) => void;

export interface OwnChangesParts {
  readonly bridge: Bridge;
  readonly log: Logger;
  /** Names of this server's tools that the caller would be shown now. */
  readonly names: (caller: Caller) => Promise<readonly string[]>;
}

const LIST = 'tools/list';

export function createOwnChanges({ bridge, log, names }: OwnChangesParts): OwnChanges {
  const telling = new WeakSet<SessionLine>();
  const changes = createListChanges({
    bridge,
    log,
    show: (method, caller) => (method === LIST ? names(caller).then(told) : undefined),
    // What the server itself changes it tells of itself.
    servers: false,
  });

  return {
    opened(outcome, { session }) {
      const { capabilities } = 'result' in outcome ? outcome.result : {};
      const tools = isObject(capabilities) ? capabilities.tools : undefined;
      if (session && isObject(tools) && tools.listChanged === true) telling.add(session);
    },
    shown(shown, caller) {
      if (caller.session && telling.has(caller.session)) changes.shown(LIST, told(shown), caller);
    },
    async listen(id, { notifications }, caller, said) {
      const { toolsListChanged } = isObject(notifications) ? notifications : {};
      // Nothing comes before the server has said what it grants, and nothing that it does not.
      let granted = false;
      const add = ({ method }: Notice) => {
        if (granted) said(notice(method, { _meta: { [META.subscription]: id } }));
      };
      const stop = await changes.listen({ ...(toolsListChanged === true && { toolsListChanged }) }, caller, add);
      return {
        stop,
        said(heard) {
          const { notifications: given } = heard.params ?? {};
          if (heard.method === ACKNOWLEDGED) granted = isObject(given) && given.toolsListChanged === true;
          said(heard);
        },
      };
    },
    close: () => changes.close(),
  };
}

const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';

function told(names: readonly string[]): Outcome {
  return { result: { tools: names.toSorted() } };
}
