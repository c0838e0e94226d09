/**
 * Opens, loads, switches and closes sessions. Opening one is decided before the agent receives it; a switch that would let the
 * agent act without asking is decided like an act; our own tool servers are added where that is configured.
 */

import { MODE_TIERS } from '../../../../mappings/acp.ts';
import { type Actor, asText, type Bridge, Fault, type Ids, type JsonObject } from '../../../../src/index.ts';
import { sameId } from '../../../../src/transport/json-rpc/raw-id.ts';
import { openingAnswer, openingForm } from '../../opening.ts';
import { refusedActText } from '../../refusals.ts';
import { compact, listOf, lookup, objectOf, textOf, within } from '../../shapes.ts';
import { type Questions, readOwn } from '../editor-view/questions.ts';
import { encode, encodeError, idOf, paramsOf, type Request, type Response } from '../frames/frame.ts';
import { withMore } from '../frames/members.ts';
import type { Wires } from '../frames/pending.ts';
import { agentGoneError, failedRequest, refusedError } from '../frames/refusals.ts';
import type { GatewayToolServer } from '../settings.ts';
import type { RestoredSessions, Restores } from './restored-sessions.ts';
import { learnModes, type SessionKey, type SessionKeys, type WaitingToOpen } from './session-keys.ts';
import type { Turn, Turns } from './turns.ts';

export interface Sessions {
  /** `session/new`, `load`, `resume`, `fork`. */
  open(request: Request): Promise<void>;
  close(request: Request): void;
  /** The editor no longer wants an answer to this request; one that waits for a person is not opened any more. */
  takenBack(requestId: string): void;
  /** One side has gone: no session is opened any more. */
  gone(why: string): void;
  /** Whether this request changes how freely the agent acts. */
  switchesMode(request: Request): boolean;
  configure(request: Request, sessionKey: SessionKey): Promise<void>;
  /** Opens a turn for one request of the editor outside of any prompt. */
  openOwn(request: Request, sessionKey: SessionKey, more?: JsonObject): Promise<Turn>;
}

export interface SessionsDeps {
  readonly bridge: Bridge;
  readonly person: Actor;
  readonly name: string;
  /** Whether the editor can show forms. */
  readonly forms: () => boolean;
  readonly ids: Ids;
  readonly wires: Wires;
  readonly sessionKeys: SessionKeys;
  readonly turns: Turns;
  readonly questions: Questions;
  /** Added to every session; servers that the agent does not support are left out. */
  readonly mcpServers: () => readonly GatewayToolServer[];
  readonly stop: (turn: Turn) => void;
  readonly restores: () => Restores;
  readonly restored: RestoredSessions;
}

export function createSessions(deps: SessionsDeps): Sessions {
  const {
    bridge,
    person,
    name,
    forms,
    ids,
    wires,
    sessionKeys,
    turns,
    questions,
    mcpServers,
    stop,
    restores,
    restored,
  } = deps;

  /** Requests that may be waiting for a person, by id. */
  const waiting = new Map<string, AbortController>();
  let over: string | undefined;

  async function open(request: Request): Promise<void> {
    const params = paramsOf(request);
    const cwd = textOf(params.cwd);
    const about = compact({
      method: request.method,
      mcp_servers: servers(params.mcpServers),
      roots: params.additionalDirectories,
    });
    const named = request.method === 'session/load' || request.method === 'session/resume';
    const question = opening(request);
    try {
      if (named) await again(request, cwd, about, question);
      else await fresh(request, await sessionKeys.create(cwd, about, question));
    } catch (thrown) {
      const id = idOf(request);
      wires.editor.send(over === undefined ? failedRequest(id, thrown) : encodeError(id, agentGoneError(over)));
    } finally {
      question.over();
    }
  }

  /** The question whether a session may be opened, as long as its request waits. */
  function opening(request: Request): WaitingToOpen & { over(): void } {
    const back = new AbortController();
    const id = sameId(idOf(request));
    waiting.set(id, back);
    let shown: string | undefined;
    return {
      signal: back.signal,
      asked(ask_id) {
        if (!forms()) return;
        const { cwd } = paramsOf(request);
        const about = { id: request.message.id ?? null, method: request.method, cwd };
        shown = wires.put('elicitation/create', openingForm(about, name), ({ message }) => {
          const body = { ask_id, ...openingAnswer(message.result) };
          // Another answer may have been first; then that one counts.
          bridge.submit({ kind: 'ask.answer', actor: { ...person, interactive: true }, body }).catch(() => {});
        });
      },
      over() {
        waiting.delete(id);
        if (shown) wires.withdraw(shown);
      },
    };
  }

  async function fresh(request: Request, made: Omit<SessionKey, 'wireId'>): Promise<void> {
    const answered = ({ line, message }: Response) => {
      const wireId = textOf(within(message, 'result', 'sessionId'));
      if (!wireId) {
        sessionKeys.discard(made).catch(() => {});
        return wires.editor.send(line);
      }
      const { sessionKey, bound } = sessionKeys.bind(wireId, made);
      learnModes(sessionKey, message.result);
      // The response precedes all updates of the session; editors drop earlier ones.
      wires.editor.sendAfter(
        bound.catch(() => {}),
        () => line,
      );
    };
    wires.calls.expect({ method: request.method, id: idOf(request), answered });
    wires.agent.send(offering(request, made.sessionId));
  }

  /** The agent restores what it can; where it cannot, or no longer knows the session, the log does. */
  async function again(
    request: Request,
    cwd: string | undefined,
    about: JsonObject,
    question: WaitingToOpen,
  ): Promise<void> {
    const wireId = asText(paramsOf(request).sessionId);
    const known = await sessionKeys.earlier(wireId);
    const { load, resume } = restores();
    if (!(request.method === 'session/load' ? load : resume)) {
      if (known) return await restored.restore(request, known);
      throw new Fault('not_found', `there is no session ${wireId.slice(0, 100)}, and the agent cannot restore one`);
    }
    const sessionKey = known ?? (await sessionKeys.find(wireId, cwd, about, question));
    const answered = ({ line, message }: Response) => {
      sessionKey.replaying = false;
      if (known && restores().log && objectOf(message.error)) {
        restored.restore(request, known).catch((thrown) => wires.editor.send(failedRequest(idOf(request), thrown)));
        return;
      }
      learnModes(sessionKey, message.result);
      wires.editor.send(line);
    };
    // Replayed updates are already in the log.
    sessionKey.replaying = request.method === 'session/load';
    wires.calls.expect({ method: request.method, id: idOf(request), answered });
    wires.agent.send(offering(request, sessionKey.sessionId));
  }

  function offering(request: Request, sessionId: string): Buffer {
    const ours = mcpServers().map((server) => server.toWire(sessionId));
    if (ours.length === 0) return request.line;
    return withMore(request.line, ['params', 'mcpServers'], ours);
  }

  function close(request: Request): void {
    const wireId = asText(paramsOf(request).sessionId);
    const answered = (response: Response) => {
      const ended = objectOf(response.message.error) ? Promise.resolve() : sessionKeys.close(wireId).catch(() => {});
      wires.editor.sendAfter(ended, () => response.line);
    };
    wires.calls.expect({ method: request.method, id: idOf(request), answered });
    wires.agent.send(request.line);
  }

  function switchesMode(request: Request): boolean {
    if (request.method === 'session/set_mode') return true;
    if (request.method !== 'session/set_config_option') return false;
    const { configId, sessionId, value } = paramsOf(request);
    const sessionKey = sessionKeys.known(asText(sessionId));
    const known = sessionKey?.modeOptions.includes(asText(configId)) || configId === 'mode';
    return known || lookup(MODE_TIERS, value) === 'act_auto';
  }

  async function configure(request: Request, sessionKey: SessionKey): Promise<void> {
    const { modeId, value, configId } = paramsOf(request);
    const to = asText(modeId ?? value ?? '');
    const known = lookup(MODE_TIERS, to);
    const tier = known ?? 'act_with_approval';
    const running = turns.running(sessionKey.wireId);
    let own: Turn | undefined;
    try {
      own = running ? undefined : await openOwn(request, sessionKey, { to });
      const turn = (running ?? own) as Turn;
      const { sink } = await turn.begun;
      const callId = ids.next('switch');
      const title = `Switch the agent to ${to}`;
      const expectation = questions.expect(turn, callId, {
        shown: { toolCall: { toolCallId: callId, title, kind: 'switch_mode', status: 'pending' } },
        read: readOwn,
      });
      let response: Response | undefined;
      const done = await sink.act(
        {
          kind: 'session.configure',
          tool_call_id: callId,
          tool: request.method,
          target: to || 'nothing',
          // An agent that no longer asks can do anything, and the meaning of an unknown mode is unknown.
          effect: known && tier !== 'act_auto' ? 'none' : 'unknown',
          arguments: compact({ from: sessionKey.mode, to, option: configId }),
          attributes: { protocol: 'acp', tier, known_mode: known !== undefined },
          cwd: sessionKey.cwd,
        },
        async () => {
          response = await wires.askAgent(request);
          const error = objectOf(response.message.error);
          if (error) return { status: 'error', output: null, error: textOf(error.message) ?? 'the agent refused' };
          return { status: 'ok', output: compact({ from: sessionKey.mode, to }) };
        },
      );
      expectation.done();
      if (done.kind === 'refused') return refuse(request, sessionKey, refusedActText(done));
      if (!response) throw new Fault('client_closed', 'stopped before the agent received the request');
      if (done.result.status === 'ok') sessionKey.mode = to;
      wires.editor.send(response.line);
    } catch (thrown) {
      wires.editor.send(failedRequest(idOf(request), thrown));
    } finally {
      own?.finish({ state: 'COMPLETED', summary: `asked to switch to ${to}` });
    }
  }

  function openOwn(request: Request, sessionKey: SessionKey, more: JsonObject = {}): Promise<Turn> {
    return turns.open(sessionKey, {
      kind: 'own',
      actor: person,
      input: { kind: 'to' in more ? 'configure' : 'editor_initiated', method: request.method, ...more },
      about: { method: request.method },
      asked: questions.asked,
      answered: questions.answered,
      stopped(turn) {
        stop(turn);
        turn.finish({ state: 'CANCELED' });
      },
    });
  }

  /** The editor displays the choice before it receives the refusal, so it is sent the mode that still holds. */
  function refuse(request: Request, { wireId, mode }: SessionKey, reason: string): void {
    wires.editor.send(encodeError(idOf(request), refusedError(reason)));
    if (!mode || request.method !== 'session/set_mode') return;
    const update = { sessionUpdate: 'current_mode_update', currentModeId: mode };
    wires.editor.send(encode({ jsonrpc: '2.0', method: 'session/update', params: { sessionId: wireId, update } }));
  }

  return {
    open,
    close,
    takenBack: (requestId) => waiting.get(sameId(requestId))?.abort(),
    gone(why) {
      over = why;
      for (const each of waiting.values()) each.abort();
    },
    switchesMode,
    configure,
    openOwn,
  };
}

/** Names and kinds; the values of variables and headers are for the agent alone. */
function servers(list: unknown): JsonObject[] {
  return listOf(list).map((server) => {
    const { name, type, url } = objectOf(server) ?? {};
    return compact({ name: textOf(name), type: textOf(type) ?? 'stdio', host: hostOf(url) });
  });
}

function hostOf(url: unknown): string | undefined {
  try {
    return typeof url === 'string' ? new URL(url).host : undefined;
  } catch {
    return undefined;
  }
}
