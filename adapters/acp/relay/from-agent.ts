/**
 * What an agent says: what it tells is written down and shown, what it wants is decided first. What it wants while nobody
 * asked it for anything has a turn of its own, so that it is decided and on record like everything else.
 */
import type { JsonObject, Logger } from '../../../src/index.ts';
import type { LineVerdict } from '../../../src/wire/byte-lines.ts';
import { objectOf, textOf } from '../shapes.ts';
import { KEEPER } from './approvals.ts';
import { turnedBack } from './batches.ts';
import { type Frame, idOf, type Notification, paramsOf, type Request, type Response, sameId } from './frame.ts';
import type { Held } from './held.ts';
import type { Late } from './late.ts';
import type { Passing } from './passing.ts';
import type { Places } from './places.ts';
import type { Prompts } from './prompts.ts';
import type { Questions } from './questions.ts';
import { failedRequest } from './refusals.ts';
import { createRunOn } from './run-on.ts';
import { isTerminalUse, type Terminals } from './terminals.ts';
import type { Turn, Turns } from './turns.ts';
import type { Wires } from './wires.ts';

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
  readonly version: () => number;
  readonly log: Logger;
}

export function createFromAgent(deps: FromAgentDeps) {
  const { wires, places, passing, prompts, turns, questions, held, terminals, late, version, log } = deps;

  /** What it asked and has no answer to, by the id it asked with. */
  const wanting = new Map<string, AbortController>();
  const decided: Readonly<Record<string, InTurn>> = {
    'session/request_permission': deps.permission,
    'fs/read_text_file': held.file,
    'fs/write_text_file': held.file,
    'terminal/create': terminals.create,
    'elicitation/create': deps.elicit,
  };

  function updated(frame: Notification): LineVerdict {
    const { sessionId, update } = paramsOf(frame);
    const told = objectOf(update);
    if (!told) return true;
    const turn = turns.running(String(sessionId));
    const place = turn?.place ?? places.known(String(sessionId));
    if (told.sessionUpdate === 'current_mode_update' && place) place.mode = textOf(told.currentModeId) ?? place.mode;
    if (!turn?.live) {
      if (place && !place.replaying) late.told(place, frame, told);
      return true;
    }
    turn.pulse.heard();
    if (told.sessionUpdate === 'tool_call' || told.sessionUpdate === 'tool_call_update') turn.cards.told(told);
    if (turn.live.scribe.more(told)) {
      runOn.learn(frame.line, String(sessionId), told);
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
      wires.editor.send(frame.line);
      questions.takenBack(id);
      wanting.get(sameId(id))?.abort();
    } else if (frame.method === 'elicitation/complete') wires.editor.send(frame.line);
    else wires.editor.sendAfter(passing.pass(frame, KEEPER), () => frame.line);
  }

  async function wanted(request: Request): Promise<void> {
    const work = Object.hasOwn(decided, request.method) ? decided[request.method] : undefined;
    const wireId = textOf(paramsOf(request).sessionId);
    if (work && wireId) return await inTurn(request, wireId, work);
    const using = isTerminalUse(request.method) ? terminals.use(request) : undefined;
    if (using) return await using;
    if (!isTerminalUse(request.method)) await passing.pass(request, KEEPER);
    await new Promise<void>((resolve) => {
      const answered = ({ line }: Response) => {
        wires.agent.send(line);
        resolve();
      };
      wires.asks.expect({ method: request.method, id: idOf(request), answered });
      wires.editor.send(request.line);
    });
  }

  /** Whoever waits for an answer may be silent until it comes. */
  function waitingFor(request: Request): Promise<void> {
    const answered = wanted(request);
    return turnsOf(request).reduce((work, { pulse }) => pulse.during(work), answered);
  }

  /** Whose sign of life this is: of the session it names, and of all when it names none. */
  function turnsOf({ message }: { readonly message: JsonObject }): readonly Turn[] {
    const wireId = textOf(objectOf(message.params)?.sessionId);
    if (!wireId) return turns.all();
    const turn = turns.running(wireId);
    return turn ? [turn] : [];
  }

  async function inTurn(request: Request, wireId: string, work: InTurn): Promise<void> {
    const taken = new AbortController();
    const id = sameId(idOf(request));
    wanting.set(id, taken);
    try {
      const running = turns.running(wireId);
      await (running ? work(request, running, taken.signal) : alone(request, wireId, work, taken.signal));
    } finally {
      if (wanting.get(id) === taken) wanting.delete(id);
    }
  }

  async function alone(request: Request, wireId: string, work: InTurn, withdrawn: AbortSignal): Promise<void> {
    const own = await turns.open(await places.find(wireId), {
      kind: 'own',
      actor: KEEPER,
      input: { kind: 'agent_initiated', method: request.method },
      about: { method: request.method, request_id: idOf(request) },
      asked: questions.asked,
      answered: questions.answered,
      stopped: (turn) => turn.finish({ state: 'CANCELED' }),
    });
    try {
      await work(request, own, withdrawn);
      await own.live?.scribe.finish(null);
    } finally {
      own.finish({ state: 'COMPLETED', summary: `the agent asked for ${request.method} outside of any prompt` });
    }
  }

  function stray({ line }: Frame): void {
    if (line.length <= 2) return;
    log.warn({ line: line.toString('utf8', 0, 200) }, 'an agent said something that is not the protocol');
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
        case 'notification':
          return () => told(frame);
        case 'response': {
          const { answered } = wires.calls.take(frame) ?? {};
          return answered ? () => answered(frame) : true;
        }
        case 'request':
          return () => void waitingFor(frame).catch((thrown) => wires.agent.send(failedRequest(idOf(frame), thrown)));
        case 'batch':
          return turnedBack(frame, wires.agent);
        case 'noise':
          stray(frame);
          return true;
      }
    },
  };
}

function isIdle(update: JsonObject): boolean {
  return update.sessionUpdate === 'state_update' && update.state === 'idle';
}
