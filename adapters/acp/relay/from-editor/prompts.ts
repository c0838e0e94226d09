/**
 * `session/prompt` and the end of a turn. A prompt reaches the agent when policy allows it and the log has it; its result
 * reaches the editor when the end and the receipt are in the log. A prompt during a turn joins that turn.
 */
import {
  type Actor,
  asFault,
  asText,
  type Bridge,
  type End,
  type Failure,
  type Json,
  type JsonObject,
  type Part,
  type Work,
} from '../../../../src/index.ts';
import type { WireError } from '../../../../src/transport/json-rpc/messages.ts';
import { sameId } from '../../../../src/transport/json-rpc/raw-id.ts';
import { promptBlocks } from '../../client/prompt.ts';
import { fromBlock, toBlock } from '../../content.ts';
import { REFUSALS_REPORTED, refusalsBlock, refusalText } from '../../refusals.ts';
import { listOf, objectOf, textOf, within } from '../../shapes.ts';
import { toCoreEnd, toCoreFailure, toWireStop, traceOf } from '../../translate.ts';
import type { Questions } from '../editor-view/questions.ts';
import { encode, encodeError, encodeResult, idOf, paramsOf, type Request, type Response } from '../frames/frame.ts';
import { withFirst, withMore } from '../frames/members.ts';
import type { Wires } from '../frames/pending.ts';
import { failedRequest, reasonOf, refusedPrompt } from '../frames/refusals.ts';
import type { SessionKey, SessionKeys } from './session-keys.ts';
import type { Turn, Turns } from './turns.ts';
import type { TurnWork } from './wrapped-agent.ts';

export interface Prompts {
  prompt(request: Request, sessionKey: SessionKey): Promise<void>;
  /** The turn of a prompt, by its request id, from the moment it arrived. */
  turnOf(id: string): Turn | undefined;
  /** A task of another client, in a session of this editor: the agent gets it as a prompt of ours. */
  foreign(work: Work): TurnWork | undefined;
  /** In the second version of the wire a turn ends with an update. */
  idle(turn: Turn, update: JsonObject, line: Buffer): void;
  /** Ends a turn that the agent will not end: later responses to its prompts are dropped. */
  abandon(turn: Turn, failure: Failure): void;
}

export interface PromptsDeps {
  readonly bridge: Bridge;
  readonly person: Actor;
  readonly name: string;
  readonly wires: Wires;
  readonly turns: Turns;
  readonly questions: Questions;
  /** Sends the cancel to the agent, once. */
  readonly stop: (turn: Turn) => void;
  /** The negotiated wire version. */
  readonly version: () => number;
  /** Starts stall detection when the agent has a prompt. */
  readonly watch: (turn: Turn) => void;
  readonly sessionKeys: Pick<SessionKeys, 'ofSession'>;
  /** The capabilities the agent declared. */
  readonly can: () => JsonObject;
  /** The conversation before this turn, for an agent that does not know it. */
  readonly history: (turn: Turn) => Promise<JsonObject | undefined>;
  /** Called before a turn ends, for acts that cannot outlast it. */
  readonly ending: (turn: Turn) => Promise<unknown>;
}

export function createPrompts(deps: PromptsDeps): Prompts {
  const { bridge, person, name, wires, turns, questions, stop, version, watch, ending, history, sessionKeys, can } =
    deps;
  const asked = new Map<string, Turn>();
  /** Prompts of a turn that the agent has not answered, by id. */
  const unanswered = new WeakMap<Turn, Set<string>>();
  /** Turns whose end the editor received from the agent. */
  const ends = new WeakSet<Turn>();

  const events = {
    actor: person,
    asked: questions.asked,
    answered: questions.answered,
    stopped: stop,
    steered(message: JsonObject, turn: Turn): void {
      // A prompt that joined the turn in this editor is with the agent already.
      if (within(message.metadata, 'acp', 'joined') === true) return;
      give(listOf(message.parts).flatMap(asBlock), turn);
    },
  };

  function foreign(work: Work): TurnWork | undefined {
    const sessionKey = sessionKeys.ofSession(work.task.session_id);
    if (!sessionKey) return undefined;
    const { turn, work: doing } = turns.adopt(sessionKey, work.task.id, events);
    turn.begun
      .then(async () => {
        const before = await history(turn);
        give([...(before ? [before] : []), ...(await promptBlocks(work, can()))], turn, before ? 1 : 0);
        watch(turn);
      })
      .catch(() => {});
    return doing;
  }

  /** Words of another client: shown in this editor, and given to the agent as a prompt of ours. */
  function give(blocks: readonly JsonObject[], turn: Turn, hidden = 0): void {
    const sessionId = turn.sessionKey.wireId;
    for (const content of blocks.slice(hidden)) {
      const update = { sessionUpdate: 'user_message_chunk', content };
      wires.editor.send(encode({ jsonrpc: '2.0', method: 'session/update', params: { sessionId, update } }));
    }
    turn.prompts += 1;
    wires.request('session/prompt', { sessionId, prompt: [...blocks] }).then(
      (response) => {
        turn.prompts -= 1;
        const failed = objectOf(response.message.error);
        if (turn.finished || turn.prompts > 0 || (version() >= 2 && !failed)) return;
        wires.editor.sendAfter(
          close(turn, response.message).catch(() => {}),
          () => Buffer.concat(turn.cards.closing(sessionId)),
        );
      },
      // The agent has gone, which ends its turns.
      () => {},
    );
  }

  async function prompt(request: Request, sessionKey: SessionKey): Promise<void> {
    const id = idOf(request);
    const running = turns.running(sessionKey.wireId);
    try {
      if (running) return await join(request, running);
      const input = await toMessage(paramsOf(request).prompt, sessionKey);
      const turn = await turns.open(sessionKey, {
        kind: 'prompt',
        input,
        about: { request_id: id, method: request.method },
        ...traceOf(paramsOf(request)),
        ...events,
      });
      await begin(request, turn);
    } catch (thrown) {
      const { kind } = asFault(thrown);
      const refused = kind === 'policy_violation' || kind === 'rate_limited';
      const frames =
        refused && version() < 2 ? refusedPrompt(id, sessionKey.wireId, reasonOf(thrown)) : [failedRequest(id, thrown)];
      for (const frame of frames) wires.editor.send(frame);
    }
  }

  async function begin(request: Request, turn: Turn): Promise<void> {
    const id = idOf(request);
    asked.set(sameId(id), turn);
    void turn.over.then(() => asked.delete(sameId(id)));
    try {
      await turn.begun;
    } catch (thrown) {
      const last = await turn.over;
      // Canceled while it waited for its decision.
      if (last?.event === 'task.canceled') return wires.editor.send(encodeResult(id, { stopReason: 'cancelled' }));
      throw thrown;
    }
    unanswered.set(turn, new Set());
    pass(await withHistory(request, turn), turn);
    watch(turn);
    const last = await turn.over;
    if (ends.has(turn)) return;
    // It ended without the agent's result: stalled, canceled and silent, or exited.
    const stopped = toWireStop(asText(last?.payload.to ?? 'CANCELED'), failureIn(last?.payload));
    for (const card of turn.cards.closing(turn.sessionKey.wireId)) wires.editor.send(card);
    if (version() >= 2) wires.editor.send(idleUpdate(turn.sessionKey.wireId, stopped));
    for (const each of unanswered.get(turn) ?? []) {
      wires.calls.giveUp(each);
      const answer = 'stop' in stopped ? encodeResult(each, { stopReason: stopped.stop }) : encodeError(each, stopped);
      wires.editor.send(answer);
    }
  }

  function pass(request: Request, turn: Turn): void {
    const id = idOf(request);
    turn.prompts += 1;
    unanswered.get(turn)?.add(id);
    const answered = (response: Response) => {
      unanswered.get(turn)?.delete(id);
      ended(response, turn);
    };
    wires.calls.expect({ method: request.method, id, answered });
    wires.agent.send(withNotes(request, turn));
  }

  async function withHistory(request: Request, turn: Turn): Promise<Request> {
    const block = await history(turn);
    return block ? { ...request, line: withFirst(request.line, ['params', 'prompt'], block) } : request;
  }

  /** An agent that told its model only that the user refused gets the reasons with the next prompt. */
  function withNotes({ line }: Request, { sessionKey, live }: Turn): Buffer {
    const refusals = sessionKey.untold.splice(0);
    if (refusals.length === 0) return line;
    void live?.recorder.note({ event: REFUSALS_REPORTED, payload: { refusals } });
    return withMore(line, ['params', 'prompt'], [refusalsBlock(refusals)]);
  }

  /** The last result of the turn is held until the log has the end; earlier updates are forwarded first. */
  function ended(response: Response, turn: Turn): void {
    turn.prompts -= 1;
    const acknowledged = version() >= 2 && !objectOf(response.message.error);
    if (acknowledged || turn.prompts > 0) wires.editor.send(response.line);
    else
      wires.editor.sendAfter(
        close(turn, response.message).catch(() => {}),
        () => closing(turn, response.line),
      );
  }

  function closing(turn: Turn, line: Buffer): Buffer {
    return Buffer.concat([...turn.cards.closing(turn.sessionKey.wireId), line]);
  }

  async function close(turn: Turn, message: JsonObject): Promise<void> {
    turns.leave(turn);
    ends.add(turn);
    const { recorder } = await turn.begun;
    await ending(turn);
    const result = (message.result ?? null) as Json;
    const summary = await recorder.finish(result);
    turn.finish(endOf(message, summary, turn.canceled !== undefined));
    await turn.over;
  }

  /** Policy also decides on a prompt during a turn; then it is part of the conversation. */
  async function join(request: Request, turn: Turn): Promise<void> {
    const { sink, taskId } = await turn.begun;
    const message = await toMessage(paramsOf(request).prompt, turn.sessionKey);
    const action = { kind: 'prompt', tool: name, arguments: { input: message }, effect: 'none' } as const;
    const answer = await sink.ask({ kind: 'approval', action });
    if (answer.kind !== 'approved') {
      for (const frame of refusedPrompt(idOf(request), turn.sessionKey.wireId, refusalText(answer)))
        wires.editor.send(frame);
      return;
    }
    const said = { ...message, metadata: { acp: { joined: true } } };
    const body = { task_id: taskId, kind: 'interrupt' as const, message: said as never };
    await bridge.submit({ kind: 'task.message', actor: person, body });
    pass(request, turn);
  }

  async function toMessage(blocks: unknown, sessionKey: SessionKey): Promise<JsonObject> {
    const parts: Part[] = [];
    for (const block of listOf(blocks)) {
      const from = fromBlock(block);
      if (!('file' in from)) {
        parts.push(from.part);
        continue;
      }
      const { kind, mime_type, bytes, visibility } = from.file;
      const body = { kind, mime_type, visibility, session_id: sessionKey.sessionId } as never;
      const registered = await bridge.submit({
        kind: 'artifact.register',
        actor: person,
        body,
        ...(bytes && { bytes }),
      });
      parts.push(from.part(registered.resource.id));
    }
    return { role: 'user', parts: parts as Json };
  }

  return {
    prompt,
    foreign,
    abandon(turn, failure) {
      for (const id of unanswered.get(turn) ?? []) wires.calls.giveUp(id);
      turns.leave(turn);
      // The text sent until then is still recorded.
      const said = ending(turn).then(() => turn.live?.recorder.finish(null) ?? '');
      void said.catch(() => '').then((summary) => turn.finish({ state: 'FAILED', failure, summary }));
    },
    turnOf: (id) => asked.get(sameId(id)),
    idle(turn, update, line) {
      const stopReason = textOf(update.stopReason) ?? 'end_turn';
      const message = textOf(within(update.error, 'message')) ?? 'the agent failed';
      const end = stopReason === 'error' ? { error: { code: 0, message } } : { result: { stopReason } };
      wires.editor.sendAfter(
        close(turn, end).catch(() => {}),
        () => closing(turn, line),
      );
    },
  };
}

/** The end of a turn in the second version of the wire. */
function idleUpdate(sessionId: string, stopped: ReturnType<typeof toWireStop>): Buffer {
  const how = 'stop' in stopped ? { stopReason: stopped.stop } : { stopReason: 'error', error: { ...stopped } };
  const update = { sessionUpdate: 'state_update', state: 'idle', ...how };
  return encode({ jsonrpc: '2.0', method: 'session/update', params: { sessionId, update } });
}

function endOf(message: JsonObject, summary: string, canceled: boolean): End {
  const error = objectOf(message.error) as WireError | undefined;
  if (!error) return toCoreEnd((message.result ?? null) as Json, summary);
  return toCoreFailure({ ...error, message: asText(error.message ?? 'the agent failed') }, canceled);
}

function failureIn(payload: JsonObject | undefined) {
  return objectOf(within(payload, 'task', 'failure')) as never;
}

/** Text and references; a message in the middle of a turn brings no files along. */
function asBlock(part: Json): JsonObject[] {
  const block = toBlock(part as Part, undefined, { image: false, embed: false });
  return block ? [block] : [];
}
