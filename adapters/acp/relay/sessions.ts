/**
 * Sessions as they are opened, loaded, switched and closed. Opening one is decided before the agent hears of it; a switch
 * that would let the agent act without asking is decided like an act; our own tools are offered where that is configured.
 */

import { MODE_TIERS } from '../../../mappings/acp.ts';
import { type Actor, asText, Fault, type Ids, type JsonObject } from '../../../src/index.ts';
import { compact, listOf, lookup, objectOf, textOf, within } from '../shapes.ts';
import { encode, encodeError, idOf, paramsOf, type Request, type Response } from './frame.ts';
import { withMore } from './members.ts';
import { learnModes, type Place, type Places } from './places.ts';
import { type Questions, readOwn } from './questions.ts';
import { failedRequest, refusedError } from './refusals.ts';
import type { OfferedServer } from './settings.ts';
import type { Turn, Turns } from './turns.ts';
import type { Wires } from './wires.ts';

export interface Sessions {
  /** `session/new`, `load`, `resume`, `fork`. */
  open(request: Request): Promise<void>;
  close(request: Request): void;
  /** Whether this decides how freely the agent acts. */
  switchesMode(request: Request): boolean;
  configure(request: Request, place: Place): Promise<void>;
  /** A turn for one request of the editor's outside of any prompt. */
  openOwn(request: Request, place: Place, more?: JsonObject): Promise<Turn>;
}

export interface SessionsDeps {
  readonly person: Actor;
  readonly ids: Ids;
  readonly wires: Wires;
  readonly places: Places;
  readonly turns: Turns;
  readonly questions: Questions;
  /** Offered to every session; those the agent cannot take are left out. */
  readonly offer: () => readonly OfferedServer[];
  readonly stop: (turn: Turn) => void;
}

export function createSessions(deps: SessionsDeps): Sessions {
  const { person, ids, wires, places, turns, questions, offer, stop } = deps;

  async function open(request: Request): Promise<void> {
    const params = paramsOf(request);
    const cwd = textOf(params.cwd);
    const about = compact({
      method: request.method,
      mcp_servers: servers(params.mcpServers),
      roots: params.additionalDirectories,
    });
    const named = request.method === 'session/load' || request.method === 'session/resume';
    try {
      if (named) await again(request, await places.find(asText(params.sessionId), cwd, about));
      else await fresh(request, cwd, about);
    } catch (thrown) {
      wires.editor.send(failedRequest(idOf(request), thrown));
    }
  }

  async function fresh(request: Request, cwd: string | undefined, about: JsonObject): Promise<void> {
    const made = await places.create(cwd, about);
    const answered = ({ line, message }: Response) => {
      const wireId = textOf(within(message, 'result', 'sessionId'));
      if (!wireId) {
        places.discard(made).catch(() => {});
        return wires.editor.send(line);
      }
      const { place, bound } = places.bind(wireId, made);
      learnModes(place, message.result);
      // The answer precedes everything about the session; editors drop what comes before it.
      wires.editor.sendAfter(
        bound.catch(() => {}),
        () => line,
      );
    };
    wires.calls.expect({ method: request.method, id: idOf(request), answered });
    wires.agent.send(offering(request, made.sessionId));
  }

  async function again(request: Request, place: Place): Promise<void> {
    const answered = ({ line, message }: Response) => {
      place.replaying = false;
      learnModes(place, message.result);
      wires.editor.send(line);
    };
    // What is told again stands in the log already.
    place.replaying = request.method === 'session/load';
    wires.calls.expect({ method: request.method, id: idOf(request), answered });
    wires.agent.send(offering(request, place.sessionId));
  }

  function offering(request: Request, sessionId: string): Buffer {
    const ours = offer().map((server) => server.toWire(sessionId));
    if (ours.length === 0) return request.line;
    return withMore(request.line, ['params', 'mcpServers'], ours);
  }

  function close(request: Request): void {
    const wireId = asText(paramsOf(request).sessionId);
    const answered = (response: Response) => {
      const ended = objectOf(response.message.error) ? Promise.resolve() : places.close(wireId).catch(() => {});
      wires.editor.sendAfter(ended, () => response.line);
    };
    wires.calls.expect({ method: request.method, id: idOf(request), answered });
    wires.agent.send(request.line);
  }

  function switchesMode(request: Request): boolean {
    if (request.method === 'session/set_mode') return true;
    if (request.method !== 'session/set_config_option') return false;
    const { configId, sessionId, value } = paramsOf(request);
    const place = places.known(asText(sessionId));
    const known = place?.modeOptions.includes(asText(configId)) || configId === 'mode';
    return known || lookup(MODE_TIERS, value) === 'act_auto';
  }

  async function configure(request: Request, place: Place): Promise<void> {
    const { modeId, value, configId } = paramsOf(request);
    const to = asText(modeId ?? value ?? '');
    const known = lookup(MODE_TIERS, to);
    const tier = known ?? 'act_with_approval';
    const running = turns.running(place.wireId);
    let own: Turn | undefined;
    try {
      own = running ? undefined : await openOwn(request, place, { to });
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
          // An agent that no longer asks can do anything, and what a mode means that nobody knows, nobody knows.
          effect: known && tier !== 'act_auto' ? 'none' : 'unknown',
          arguments: compact({ from: place.mode, to, option: configId }),
          attributes: { protocol: 'acp', tier, known_mode: known !== undefined },
          cwd: place.cwd,
        },
        async () => {
          response = await wires.askAgent(request);
          const error = objectOf(response.message.error);
          if (error) return { status: 'error', output: null, error: textOf(error.message) ?? 'the agent refused' };
          return { status: 'ok', output: compact({ from: place.mode, to }) };
        },
      );
      expectation.done();
      if (done.kind === 'refused') return refuse(request, place, done.reason);
      if (!response) throw new Fault('client_closed', 'stopped before the agent was told');
      if (done.result.status === 'ok') place.mode = to;
      wires.editor.send(response.line);
    } catch (thrown) {
      wires.editor.send(failedRequest(idOf(request), thrown));
    } finally {
      own?.finish({ state: 'COMPLETED', summary: `asked to switch to ${to}` });
    }
  }

  function openOwn(request: Request, place: Place, more: JsonObject = {}): Promise<Turn> {
    return turns.open(place, {
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

  /** The editor shows what was chosen before it hears of the refusal, so it is told what still holds. */
  function refuse(request: Request, { wireId, mode }: Place, reason: string): void {
    wires.editor.send(encodeError(idOf(request), refusedError(reason)));
    if (!mode || request.method !== 'session/set_mode') return;
    const update = { sessionUpdate: 'current_mode_update', currentModeId: mode };
    wires.editor.send(encode({ jsonrpc: '2.0', method: 'session/update', params: { sessionId: wireId, update } }));
  }

  return { open, close, switchesMode, configure, openOwn };
}

/** Names and kinds; what stands in variables and headers is for the agent alone. */
function servers(given: unknown): JsonObject[] {
  return listOf(given).map((server) => {
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
