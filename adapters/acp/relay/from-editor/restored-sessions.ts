/**
 * `session/load` and `session/resume` for agents that cannot do what the editor asks for: the editor gets the history from the
 * log, and the agent the closest thing it can do. An agent that can do neither, or no longer knows the session, gets a new
 * session, and the conversation so far with the next prompt.
 */
import type { Actor, Bridge, JsonObject } from '../../../../src/index.ts';
import { asText } from '../../../../src/index.ts';
import { conversation, type Said } from '../../client/prompt.ts';
import type { ClientProfile } from '../../server/client-profile.ts';
import { fetchArtifact } from '../../server/fetch-artifact.ts';
import { createEventRenderer } from '../../server/render-events.ts';
import { objectOf, textOf, within } from '../../shapes.ts';
import { OURS, withMeta } from '../../translate.ts';
import { encode, encodeResult, idOf, type Request, type Response } from '../frames/frame.ts';
import type { Wires } from '../frames/pending.ts';
import { learnModes, type SessionKey } from './session-keys.ts';
import type { Turn } from './turns.ts';

/** What the agent can do with an earlier session. */
export interface Restores {
  readonly load: boolean;
  readonly resume: boolean;
  /** What it cannot restore, or has forgotten, comes from the log. */
  readonly log: boolean;
}

export interface RestoredSessions {
  /** Settles when the editor has the history and its response. */
  restore(request: Request, sessionKey: SessionKey): Promise<void>;
  /** The conversation before this turn, for an agent that does not know it. */
  history(turn: Pick<Turn, 'sessionKey' | 'task'>): Promise<JsonObject | undefined>;
}

export interface RestoredDeps {
  readonly bridge: Bridge;
  readonly person: Actor;
  readonly wires: Wires;
  readonly client: () => ClientProfile;
  readonly restores: () => Restores;
  /** The request's MCP servers, with ours. */
  readonly servers: (request: Request, sessionId: string) => JsonObject;
}

export function createRestoredSessions(deps: RestoredDeps): RestoredSessions {
  const { bridge, person, wires, client, restores, servers } = deps;

  async function restore(request: Request, sessionKey: SessionKey): Promise<void> {
    const { wireId, sessionId } = sessionKey;
    const where = servers(request, sessionId);
    const other = request.method === 'session/load' ? 'session/resume' : 'session/load';
    const can = other === 'session/load' ? restores().load : restores().resume;
    let response: Response | undefined;
    if (can) {
      // The editor gets the history from the log, or asked for none.
      sessionKey.replaying = 'unseen';
      response = await wires.request(other, { ...where, sessionId: wireId });
      sessionKey.replaying = false;
    }
    if (!response || objectOf(response.message.error)) {
      response = await wires.request('session/new', where);
      const fresh = textOf(within(response.message, 'result', 'sessionId'));
      if (!fresh) return wires.editor.send(withId(request, response));
      wires.aliases.set(wireId, fresh);
      sessionKey.forgotten = true;
    }
    learnModes(sessionKey, response.message.result);
    if (request.method === 'session/load') await replay(sessionKey);
    const { sessionId: _, ...result } = objectOf(response.message.result) ?? {};
    wires.editor.send(encodeResult(idOf(request), result));
  }

  /** As at our own door: whole messages and calls, in the order of the log. */
  async function replay({ sessionId, wireId }: SessionKey): Promise<void> {
    const artifact = (id: string) => fetchArtifact(bridge, person, id);
    const renderer = createEventRenderer({ client: client(), own: () => false, artifact });
    for await (const event of bridge.events(person, { stream: { of: 'session', id: sessionId } })) {
      if (event.replayed) continue;
      for (const frame of await renderer.render(event, true)) {
        if (!('update' in frame)) continue;
        const update = withMeta(frame.update, OURS, { replayed: true });
        wires.editor.send(encode({ jsonrpc: '2.0', method: 'session/update', params: { sessionId: wireId, update } }));
      }
    }
  }

  async function* said(sessionId: string, except: string): AsyncIterable<Said> {
    const kinds = ['user.message', 'agent.message'] as const;
    const stream = { of: 'session', id: sessionId } as const;
    for await (const event of bridge.events(person, { stream, kinds: [...kinds] })) {
      if (event.task_id === except || (event.event !== 'user.message' && event.event !== 'agent.message')) continue;
      const { message } = event.payload;
      if (message) yield { role: asText(message.role), parts: message.parts };
    }
  }

  return {
    restore,
    async history({ sessionKey, task }) {
      if (!sessionKey.forgotten) return undefined;
      sessionKey.forgotten = false;
      return await conversation(said(sessionKey.sessionId, await task));
    },
  };
}

/** The agent's error, in response to the editor's request. */
function withId(request: Request, { message }: Response): Buffer {
  return encode({ jsonrpc: '2.0', id: request.message.id ?? null, error: message.error ?? null });
}
