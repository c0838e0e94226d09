/**
 * Handles lines from the agent: updates are recorded and shown, requests are decided first. The table gives the handling of
 * each frame; a frame that cannot be read or classified never crosses. A request outside of any prompt gets its own turn, so
 * that it is decided and recorded like every other.
 */
import { judgeFrame } from '../../../../mappings/acp.ts';
import { HITL_REQUESTED } from '../../../../mappings/acp-harn.ts';
import { Fault, type JsonObject, type Logger } from '../../../../src/index.ts';
import { sameId } from '../../../../src/transport/json-rpc/raw-id.ts';
import type { LineVerdict } from '../../../../src/transport/ndjson/byte-lines.ts';
import { isStanding } from '../../client/agent-process.ts';
import { objectOf, textOf } from '../../shapes.ts';
import type { Questions } from '../editor-view/questions.ts';
import { type Frame, idOf, type Notification, paramsOf, type Request, type Response } from '../frames/frame.ts';
import type { Passing } from '../frames/passthrough.ts';
import { answeredFor, isOwnId, type Wires } from '../frames/pending.ts';
import { failedRequest } from '../frames/refusals.ts';
import { CONNECTION, type RefusedFrames } from '../frames/refused-frames.ts';
import { createRunOn } from '../frames/repeated-lines.ts';
import type { Prompts } from '../from-editor/prompts.ts';
import type { SessionKey, SessionKeys } from '../from-editor/session-keys.ts';
import type { Turn, Turns } from '../from-editor/turns.ts';
import { invalid, requireSound, sessionIn } from './act-params.ts';
import { SYSTEM_ACTOR } from './approved-acts.ts';
import type { ActExtension } from './extension.ts';
import type { HeldActs } from './held-acts.ts';
import type { Hitl } from './hitl.ts';
import type { Late } from './late-updates.ts';
import { isTerminalUse, type RelayedTerminals } from './terminals.ts';

/** Settles when the agent has its response; the signal fires when the agent has canceled the request. */
type InTurn = (request: Request, turn: Turn, withdrawn: AbortSignal) => Promise<void>;

export interface FromAgentDeps {
  readonly wires: Wires;
  readonly sessionKeys: SessionKeys;
  readonly passing: Passing;
  readonly prompts: Prompts;
  readonly turns: Turns;
  readonly questions: Questions;
  readonly held: HeldActs;
  readonly terminals: RelayedTerminals;
  readonly late: Late;
  readonly permission: InTurn;
  readonly elicit: InTurn;
  readonly extension: ActExtension;
  readonly hitl: Hitl;
  readonly refused: RefusedFrames;
  readonly version: () => number;
  readonly log: Logger;
}

const DROPPED = () => {};

export function createFromAgent(deps: FromAgentDeps) {
  const { wires, sessionKeys, passing, prompts, turns, questions, held, terminals, late, refused, version, log } = deps;

  /** Unanswered requests of the agent, by id. */
  const wanting = new Map<string, AbortController>();
  /** Sessions of sub-agents, which the agent announced in a session that was opened here. */
  const children = new Set<string>();
  const decided: ReadonlyMap<string, InTurn> = new Map([
    ['session/request_permission', deps.permission],
    ['fs/read_text_file', held.file],
    ['fs/write_text_file', held.file],
    ['terminal/create', terminals.create],
    ['elicitation/create', deps.elicit],
  ]);

  function updated(frame: Notification): LineVerdict {
    const { sessionId, update } = paramsOf(frame);
    const reported = objectOf(update);
    const wireId = textOf(sessionId);
    if (!reported || !wireId) {
      return () => refused.refuse('agent', frame, 'session/update needs a sessionId and an update', { code: -32602 });
    }
    const turn = turns.running(wireId);
    const sessionKey = turn?.sessionKey ?? sessionKeys.known(wireId);
    if (reported.sessionUpdate === 'current_mode_update' && sessionKey)
      sessionKey.mode = textOf(reported.currentModeId) ?? sessionKey.mode;
    if (reported.sessionUpdate === 'subagent_update' && sessionKey && textOf(reported.sessionId)) {
      children.add(reported.sessionId as string);
    }
    if (sessionKey?.replaying === 'unseen' && !isStanding(reported.sessionUpdate)) return DROPPED;
    if (!turn?.live) {
      if (sessionKey && !sessionKey.replaying) {
        turns.last(wireId)?.recorder.late(reported);
        late.reported(sessionKey, frame, reported);
      }
      return true;
    }
    turn.pulse.received();
    deps.hitl.reported(reported, turn);
    if (reported.sessionUpdate === 'tool_call' || reported.sessionUpdate === 'tool_call_update')
      turn.cards.reported(reported);
    if (turn.live.recorder.more(reported)) {
      runOn.learn(frame.line, wireId, reported);
      return true;
    }
    const written = turn.live.recorder.reported(reported);
    if (version() >= 2 && isIdle(reported)) return () => prompts.idle(turn, reported, frame.line);
    return written ? () => wires.editor.sendAfter(written, () => frame.line) : true;
  }

  /** Does what `updated` does, for a line that differs from the previous one only in its text. */
  const runOn = createRunOn((wireId, like, words) => {
    const turn = turns.running(wireId);
    if (!turn?.live?.recorder.more(like, words)) return false;
    turn.pulse.received();
    return true;
  });

  function reported(frame: Notification): void {
    if (frame.method === '$/cancel_request') {
      const id = JSON.stringify(paramsOf(frame).requestId ?? null);
      const wanted = wanting.get(sameId(id));
      // The agent may not cancel a request of the other side, or one that is already answered.
      if (wanted) {
        wires.editor.send(frame.line);
        questions.takenBack(id);
        wanted.abort();
      } else refused.dropped('agent', frame, 'there is no open request of the agent with this id');
    } else if (frame.method === 'elicitation/complete') wires.editor.send(frame.line);
    else {
      const [turn] = turnsOf(frame).filter(({ live }) => live);
      if (frame.method === HITL_REQUESTED && turn) deps.hitl.requested(paramsOf(frame), turn);
      wires.editor.sendAfter(passing.pass(frame, SYSTEM_ACTOR), () => frame.line);
    }
  }

  async function wanted(request: Request, withdrawn: AbortSignal): Promise<void> {
    const { method } = request;
    const judged = judgeFrame('agent', 'request', method);
    if (judged.handling === 'refuse') return refused.refuse('agent', request, judged.reason);
    const work = decided.get(method);
    if (judged.handling === 'act' || work || isTerminalUse(method)) requireSound(request);
    if (method === 'elicitation/create' && isAboutCall(request)) return await carried(request);
    if (work) return await inTurn(request, sessionKeyOf(request), (turn) => work(request, turn, withdrawn));
    if (isTerminalUse(method)) {
      sessionKeyOf(request);
      return await terminals.use(request);
    }
    if (judged.handling === 'pass') return await carried(request);
    const { effect = 'unknown' } = judged.row ?? {};
    await inTurn(request, anySessionKey(request), (turn) =>
      deps.extension({ from: 'agent', request, effect }, turn, withdrawn),
    );
  }

  async function carried(request: Request): Promise<void> {
    await passing.pass(request, SYSTEM_ACTOR);
    const { line } = await wires.askEditor(request);
    wires.agent.send(line);
  }

  /** A form may belong to a request of the editor, such as a login, instead of a session. */
  function isAboutCall(request: Request): boolean {
    const { sessionId, requestId } = paramsOf(request);
    return (
      sessionId === undefined && requestId !== undefined && wires.calls.get(JSON.stringify(requestId)) !== undefined
    );
  }

  /** The session it names, which must be one that was opened on this connection. */
  function sessionKeyOf(request: Request): SessionKey | string {
    const wireId = sessionIn(request);
    const sessionKey = turns.running(wireId)?.sessionKey ?? sessionKeys.known(wireId);
    if (sessionKey || children.has(wireId)) return sessionKey ?? wireId;
    throw invalid('sessionId', 'names no session that is open on this connection');
  }

  /** Vendor requests need not name a session. */
  function anySessionKey(request: Request): SessionKey | string {
    const wireId = textOf(paramsOf(request).sessionId);
    const named = wireId ? sessionKeys.known(wireId) : undefined;
    return named ?? turns.all().find(({ live }) => live)?.sessionKey ?? CONNECTION;
  }

  async function inTurn(request: Request, at: SessionKey | string, work: (turn: Turn) => Promise<void>): Promise<void> {
    const sessionKey = typeof at === 'string' ? await sessionKeys.find(at) : at;
    const running = turns.running(sessionKey.wireId);
    await (running ? work(running) : alone(request, sessionKey, work));
  }

  /** The agent may be silent until it has its response. */
  async function waitingFor(request: Request): Promise<void> {
    const id = sameId(idOf(request));
    if (isOwnId(id)) return refused.refuse('agent', request, 'ids that begin with gw: are taken');
    if (wanting.has(id)) {
      return refused.refuse('agent', request, 'a request with this id has no answer yet', { anonymous: true });
    }
    const taken = new AbortController();
    wanting.set(id, taken);
    try {
      const answered = wanted(request, taken.signal);
      await turnsOf(request).reduce((work, { pulse }) => pulse.during(work), answered);
    } catch (thrown) {
      if (thrown instanceof Fault && thrown.kind === 'invalid_request') {
        refused.refuse('agent', request, thrown.message, { code: -32602 });
      } else wires.agent.send(failedRequest(idOf(request), thrown));
    } finally {
      wanting.delete(id);
    }
  }

  /** The turns for which this is a sign of life: of the session it names, or all when it names none. */
  function turnsOf({ message }: { readonly message: JsonObject }): readonly Turn[] {
    const wireId = textOf(objectOf(message.params)?.sessionId);
    if (!wireId) return turns.all();
    const turn = turns.running(wireId);
    return turn ? [turn] : [];
  }

  async function alone(request: Request, sessionKey: SessionKey, work: (turn: Turn) => Promise<void>): Promise<void> {
    const own = await turns.open(sessionKey, {
      kind: 'own',
      actor: SYSTEM_ACTOR,
      input: { kind: 'agent_initiated', method: request.method },
      about: { method: request.method, request_id: idOf(request) },
      asked: questions.asked,
      answered: questions.answered,
      stopped: (turn) => turn.finish({ state: 'CANCELED' }),
    });
    try {
      await work(own);
      await own.live?.recorder.finish(null);
    } finally {
      own.finish({ state: 'COMPLETED', summary: `the agent asked for ${request.method} outside of any prompt` });
    }
  }

  function stray({ line }: Frame): void {
    log.warn({ line: line.toString('utf8', 0, 200) }, 'an agent wrote something that is not the protocol');
  }

  function answered(frame: Response): LineVerdict {
    const entry = wires.calls.take(frame);
    if (!entry) return () => refused.dropped('agent', frame, 'no request waits for this response');
    const { answered: take } = entry;
    return take ? () => take(frame) : true;
  }

  return {
    /** Records the lines that were forwarded before the log was open, in order. */
    async early(frames: readonly Frame[], missed: number): Promise<void> {
      for (const [at, frame] of frames.entries()) {
        if (frame.kind === 'noise') stray(frame);
        if (frame.kind !== 'notification') continue;
        const more = missed > 0 && at === frames.length - 1 ? { missed } : {};
        await passing.note(frame, SYSTEM_ACTOR, { acp: { early: true, ...more } });
      }
    },
    runOn,
    look(frame: Frame): LineVerdict {
      if (frame.kind === 'notification' && frame.method === 'session/update') return updated(frame);
      if ('message' in frame) for (const { pulse } of turnsOf(frame)) pulse.received();
      switch (frame.kind) {
        case 'notification': {
          const judged = judgeFrame('agent', 'notification', frame.method);
          if (judged.handling === 'refuse') return () => refused.refuse('agent', frame, judged.reason);
          return () => reported(frame);
        }
        case 'response':
          return answered(frame);
        case 'request':
          return () => void waitingFor(frame);
        case 'batch':
          return () => refused.refuse('agent', frame, 'one JSON-RPC object at a time');
        case 'unreadable':
          return () => {
            refused.unreadable('agent', frame);
            if (frame.answers) answeredFor(wires.calls, frame, wires.editor);
          };
        case 'noise':
          return () => stray(frame);
        case 'blank':
          return DROPPED;
      }
    },
  };
}

function isIdle(update: JsonObject): boolean {
  return update.sessionUpdate === 'state_update' && update.state === 'idle';
}
