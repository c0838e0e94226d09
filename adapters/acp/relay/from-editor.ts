/** What an editor says: prompts, sessions and switches are decided before the agent hears of them; the rest is carried. */
import type { Actor } from '../../../src/index.ts';
import type { LineVerdict } from '../../../src/wire/byte-lines.ts';
import { textOf } from '../shapes.ts';
import { turnedBack } from './batches.ts';
import { type Frame, idOf, type Notification, paramsOf, type Request, type Response } from './frame.ts';
import type { Passing } from './passing.ts';
import type { Places } from './places.ts';
import type { Prompts } from './prompts.ts';
import { failedRequest } from './refusals.ts';
import type { Sessions } from './sessions.ts';
import type { Turn, Turns } from './turns.ts';
import type { Wires } from './wires.ts';

export interface FromEditorDeps {
  readonly person: Actor;
  readonly wires: Wires;
  readonly places: Places;
  readonly passing: Passing;
  readonly prompts: Prompts;
  readonly sessions: Sessions;
  readonly turns: Turns;
  /** What the agent said about itself. */
  readonly initialized: (result: unknown) => void;
  readonly cancelTask: (turn: Turn, reason: string) => void;
}

const OPENS = ['session/new', 'session/load', 'session/resume', 'session/fork'];
const CLOSES = ['session/close', 'session/delete'];

export function createFromEditor(deps: FromEditorDeps) {
  const { person, wires, places, passing, prompts, sessions, turns, initialized, cancelTask } = deps;

  /** Settles when the agent has it, or the editor knows why not. */
  async function asked(request: Request): Promise<void> {
    const { method } = request;
    if (OPENS.includes(method)) return await sessions.open(request);
    if (CLOSES.includes(method)) return sessions.close(request);
    const wireId = textOf(paramsOf(request).sessionId) ?? '';
    if (method === 'session/prompt') return await prompts.prompt(request, await places.find(wireId));
    return await sessions.configure(request, await places.find(wireId));
  }

  function request(frame: Request): void {
    const { method } = frame;
    const refuse = (thrown: unknown) => wires.editor.send(failedRequest(idOf(frame), thrown));
    if (method === 'initialize') {
      greeted(frame);
      wires.agent.send(frame.line);
      void passing.note(frame, person);
    } else if (isOurs(frame)) asked(frame).catch(refuse);
    else {
      wires.calls.expect({ method, id: idOf(frame) });
      const decided = passing.pass(frame, person);
      wires.agent.sendAfter(decided, () => frame.line);
      decided.catch((why) => {
        wires.calls.forget(idOf(frame));
        refuse(why);
      });
    }
  }

  function isOurs(frame: Request): boolean {
    const { method } = frame;
    if (method === 'session/new') return true;
    // Without a session it is no more than a call that the agent will not understand.
    if (!textOf(paramsOf(frame).sessionId)) return false;
    return (
      method === 'session/prompt' || OPENS.includes(method) || CLOSES.includes(method) || sessions.switchesMode(frame)
    );
  }

  function greeted(frame: Request): void {
    const answered = (response: Response) => {
      initialized(response.message.result);
      wires.editor.send(response.line);
    };
    wires.calls.expect({ method: frame.method, id: idOf(frame), answered });
  }

  function told(frame: Notification): void {
    const { sessionId, requestId } = paramsOf(frame);
    if (frame.method === 'session/cancel') {
      const turn = turns.running(String(sessionId));
      if (turn) turn.canceled = 'by_editor';
      stopped(frame, turn);
    } else if (frame.method === '$/cancel_request') {
      stopped(frame, prompts.turnOf(JSON.stringify(requestId ?? null)));
    } else wires.agent.sendAfter(passing.pass(frame, person), () => frame.line);
  }

  /** Stopping needs nobody's leave: the agent hears it at once, and the log with it. */
  function stopped(frame: Notification, turn: Turn | undefined): void {
    wires.agent.send(frame.line);
    if (turn) cancelTask(turn, 'canceled in the editor');
  }

  return {
    greeted,
    look(frame: Frame): LineVerdict {
      switch (frame.kind) {
        case 'response': {
          const { answered } = wires.asks.take(frame) ?? {};
          return answered ? () => answered(frame) : true;
        }
        case 'request':
          return () => request(frame);
        case 'notification':
          return () => told(frame);
        case 'batch':
          return turnedBack(frame, wires.editor);
        case 'noise':
          return true;
      }
    },
  };
}
