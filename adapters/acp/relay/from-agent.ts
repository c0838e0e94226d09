/**
 * What an agent sends: updates are written down and shown, requests are decided first. The table says what becomes of each
 * frame; one that cannot be read or placed never crosses. A request outside of any prompt has a turn of its own, so that it
 * is decided and on record like everything else.
 */
import { judgeFrame } from '../../../mappings/acp.ts';
import { Fault, type JsonObject, type Logger } from '../../../src/index.ts';
import type { LineVerdict } from '../../../src/wire/byte-lines.ts';
import { objectOf, textOf } from '../shapes.ts';
import { KEEPER } from './approvals.ts';
import type { ActExtension } from './extension.ts';
import { type Frame, idOf, type Notification, paramsOf, type Request, type Response, sameId } from './frame.ts';
import type { Held } from './held.ts';
import type { Late } from './late.ts';
import { invalid, requireSound, sessionIn } from './params.ts';
import type { Passing } from './passing.ts';
import type { Place, Places } from './places.ts';
import type { Prompts } from './prompts.ts';
import type { Questions } from './questions.ts';
import { failedRequest } from './refusals.ts';
import { CONNECTION, type RefusedFrames } from './refused-frames.ts';
import { createRunOn } from './run-on.ts';
import { isTerminalUse, type Terminals } from './terminals.ts';
import type { Turn, Turns } from './turns.ts';
import { answeredFor, isOwnId, type Wires } from './wires.ts';

/** Settles when the agent has its answer; the signal fires when it no longer wants one. */
type InTurn = (request: Request, turn: Turn, withdrawn: AbortSignal) => Promise<void>;

export interface FromAgentDeps {
  readonly wires: Wires;
  readonly places: Places;
  readonly passing: Passing;
  readonly prompts: Prompts;
  readonly turns: Turns;
  readonly questions: Questions;
  readonly held: Held;
  readonly terminals: Terminals;
  readonly late: Late;
  readonly permission: InTurn;
  readonly elicit: InTurn;
  readonly extension: ActExtension;
  readonly refused: RefusedFrames;
  readonly version: () => number;
  readonly log: Logger;
}

const DROPPED = () => {};

export function createFromAgent(deps: FromAgentDeps) {
  const { wires, places, passing, prompts, turns, questions, held, terminals, late, refused, version, log } = deps;

  /** What it asked and has no answer to, by the id it asked with. */
  const wanting = new Map<string, AbortController>();
  /** Sessions of agents it started itself, as it said in a session that was opened here. */
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
    const told = objectOf(update);
    const wireId = textOf(sessionId);
    if (!told || !wireId) {
      return () => refused.refuse('agent', frame, 'session/update needs a sessionId and an update', { code: -32602 });
    }
    const turn = turns.running(wireId);
    const place = turn?.place ?? places.known(wireId);
    if (told.sessionUpdate === 'current_mode_update' && place) place.mode = textOf(told.currentModeId) ?? place.mode;
    if (told.sessionUpdate === 'subagent_update' && place && textOf(told.sessionId)) {
      children.add(told.sessionId as string);
    }
    if (!turn?.live) {
      if (place && !place.replaying) late.told(place, frame, told);
      return true;
    }
    turn.pulse.heard();
    if (told.sessionUpdate === 'tool_call' || told.sessionUpdate === 'tool_call_update') turn.cards.told(told);
    if (turn.live.scribe.more(told)) {
      runOn.learn(frame.line, wireId, told);
      return true;
    }
    const written = turn.live.scribe.told(told);
    if (version() >= 2 && isIdle(told)) return () => prompts.idle(turn, told, frame.line);
    return written ? () => wires.editor.sendAfter(written, () => frame.line) : true;
  }

  /** What `updated` does with a line that has been looked at before, but for its words. */
  const runOn = createRunOn((wireId, like, words) => {
    const turn = turns.running(wireId);
    if (!turn?.live?.scribe.more(like, words)) return false;
    turn.pulse.heard();
    return true;
  });

  function told(frame: Notification): void {
    if (frame.method === '$/cancel_request') {
      const id = JSON.stringify(paramsOf(frame).requestId ?? null);
      const wanted = wanting.get(sameId(id));
      // A request of another side, or one that has its answer, is not its to take back.
      if (wanted) {
        wires.editor.send(frame.line);
        questions.takenBack(id);
        wanted.abort();
      } else refused.dropped('agent', frame, 'there is no open request of the agent with this id');
    } else if (frame.method === 'elicitation/complete') wires.editor.send(frame.line);
    else wires.editor.sendAfter(passing.pass(frame, KEEPER), () => frame.line);
  }

  async function wanted(request: Request, withdrawn: AbortSignal): Promise<void> {
    const { method } = request;
    const judged = judgeFrame('agent', 'request', method);
    if (judged.handling === 'refuse') return refused.refuse('agent', request, judged.reason);
    const work = decided.get(method);
    if (judged.handling === 'act' || work || isTerminalUse(method)) requireSound(request);
    if (method === 'elicitation/create' && isAboutCall(request)) return await carried(request);
    if (work) return await inTurn(request, placeOf(request), (turn) => work(request, turn, withdrawn));
    if (isTerminalUse(method)) {
      placeOf(request);
      return await terminals.use(request);
    }
    if (judged.handling === 'pass') return await carried(request);
    const { effect = 'unknown' } = judged.row ?? {};
    await inTurn(request, anyPlace(request), (turn) =>
      deps.extension({ from: 'agent', request, effect }, turn, withdrawn),
    );
  }

  async function carried(request: Request): Promise<void> {
    await passing.pass(request, KEEPER);
    const { line } = await wires.askEditor(request);
    wires.agent.send(line);
  }

  /** A form may be about a request of the editor's, such as a login, instead of a session. */
  function isAboutCall(request: Request): boolean {
    const { sessionId, requestId } = paramsOf(request);
    return (
      sessionId === undefined && requestId !== undefined && wires.calls.get(JSON.stringify(requestId)) !== undefined
    );
  }

  /** The session it names, which has to be one that was opened on this connection. */
  function placeOf(request: Request): Place | string {
    const wireId = sessionIn(request);
    const place = turns.running(wireId)?.place ?? places.known(wireId);
    if (place || children.has(wireId)) return place ?? wireId;
    throw invalid('sessionId', 'names no session that is open on this connection');
  }

  /** Calls of vendors need not name a session. */
  function anyPlace(request: Request): Place | string {
    const wireId = textOf(paramsOf(request).sessionId);
    const named = wireId ? places.known(wireId) : undefined;
    return named ?? turns.all().find(({ live }) => live)?.place ?? CONNECTION;
  }

  async function inTurn(request: Request, at: Place | string, work: (turn: Turn) => Promise<void>): Promise<void> {
    const place = typeof at === 'string' ? await places.find(at) : at;
    const running = turns.running(place.wireId);
    await (running ? work(running) : alone(request, place, work));
  }

  /** The agent may be silent until it has its answer. */
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

  /** Whose sign of life this is: of the session it names, and of all when it names none. */
  function turnsOf({ message }: { readonly message: JsonObject }): readonly Turn[] {
    const wireId = textOf(objectOf(message.params)?.sessionId);
    if (!wireId) return turns.all();
    const turn = turns.running(wireId);
    return turn ? [turn] : [];
  }

  async function alone(request: Request, place: Place, work: (turn: Turn) => Promise<void>): Promise<void> {
    const own = await turns.open(place, {
      kind: 'own',
      actor: KEEPER,
      input: { kind: 'agent_initiated', method: request.method },
      about: { method: request.method, request_id: idOf(request) },
      asked: questions.asked,
      answered: questions.answered,
      stopped: (turn) => turn.finish({ state: 'CANCELED' }),
    });
    try {
      await work(own);
      await own.live?.scribe.finish(null);
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
    /** It went on when there was no log yet; now it is written down, one after the other. */
    async early(frames: readonly Frame[], missed: number): Promise<void> {
      for (const [at, frame] of frames.entries()) {
        if (frame.kind === 'noise') stray(frame);
        if (frame.kind !== 'notification') continue;
        const more = missed > 0 && at === frames.length - 1 ? { missed } : {};
        await passing.note(frame, KEEPER, { acp: { early: true, ...more } });
      }
    },
    runOn,
    look(frame: Frame): LineVerdict {
      if (frame.kind === 'notification' && frame.method === 'session/update') return updated(frame);
      if ('message' in frame) for (const { pulse } of turnsOf(frame)) pulse.heard();
      switch (frame.kind) {
        case 'notification': {
          const judged = judgeFrame('agent', 'notification', frame.method);
          if (judged.handling === 'refuse') return () => refused.refuse('agent', frame, judged.reason);
          return () => told(frame);
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
