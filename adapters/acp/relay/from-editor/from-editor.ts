/**
 * Handles lines from the editor: prompts, sessions, mode switches and requests without a row are decided before the agent
 * receives them; all others are forwarded. A frame that cannot be read or classified never crosses.
 */
import { judgeFrame } from '../../../../mappings/acp.ts';
import { HITL_RESPOND } from '../../../../mappings/acp-harn.ts';
import { type Actor, asFault } from '../../../../src/index.ts';
import { NOT_JSON } from '../../../../src/transport/json-rpc/messages.ts';
import { sameId } from '../../../../src/transport/json-rpc/raw-id.ts';
import type { LineVerdict } from '../../../../src/transport/ndjson/byte-lines.ts';
import { textOf } from '../../shapes.ts';
import {
  type Frame,
  idOf,
  type Notification,
  paramsOf,
  type Request,
  type Response,
  unreadable,
} from '../frames/frame.ts';
import type { Passing } from '../frames/passthrough.ts';
import { answeredFor, isOwnId, type Wires } from '../frames/pending.ts';
import { failedRequest } from '../frames/refusals.ts';
import { CONNECTION, type RefusedFrames } from '../frames/refused-frames.ts';
import { restorable } from '../frames/restorable.ts';
import { requireSound, sessionIn } from '../from-agent/act-params.ts';
import type { ActExtension } from '../from-agent/extension.ts';
import type { Hitl } from '../from-agent/hitl.ts';
import type { Prompts } from './prompts.ts';
import type { SessionKeys } from './session-keys.ts';
import type { Sessions } from './sessions.ts';
import type { Turn, Turns } from './turns.ts';

export interface FromEditorDeps {
  readonly person: Actor;
  readonly wires: Wires;
  readonly sessionKeys: SessionKeys;
  readonly passing: Passing;
  readonly prompts: Prompts;
  readonly sessions: Sessions;
  readonly turns: Turns;
  readonly extension: ActExtension;
  readonly hitl: Pick<Hitl, 'responded'>;
  /** Whether the editor is told that every session can be loaded and resumed. */
  readonly additions: boolean;
  readonly refused: RefusedFrames;
  /** Called with the agent's `initialize` result. */
  readonly initialized: (result: unknown) => void;
  /** Called with the editor's `initialize` request. */
  readonly greeted: (request: Request) => void;
  readonly cancelTask: (turn: Turn, reason: string) => void;
}

const OPENS = ['session/new', 'session/load', 'session/resume', 'session/fork'];
const CLOSES = ['session/close', 'session/delete'];

export function createFromEditor(deps: FromEditorDeps) {
  const { person, wires, sessionKeys, passing, prompts, sessions, turns, refused, initialized, cancelTask } = deps;
  const { additions } = deps;
  /** Requests that are being decided, by id; those forwarded to the agent are in the ledger. */
  const deciding = new Set<string>();

  /** Settles when the agent has the request, or the editor has the reason for a refusal. */
  async function decided(request: Request): Promise<void> {
    const { method } = request;
    if (CLOSES.includes(method)) {
      sessionIn(request);
      return sessions.close(request);
    }
    if (method === 'session/new' || method === 'session/fork') return await sessions.open(request);
    const wireId = sessionIn(request);
    if (OPENS.includes(method)) return await sessions.open(request);
    if (method === 'session/prompt') return await prompts.prompt(request, await sessionKeys.find(wireId));
    return await sessions.configure(request, await sessionKeys.find(wireId));
  }

  /** The effect of the request is unknown, so it is decided like every act. */
  async function extended(request: Request): Promise<void> {
    requireSound(request);
    const wireId = textOf(paramsOf(request).sessionId);
    const named = wireId ? sessionKeys.known(wireId) : undefined;
    const sessionKey =
      named ?? turns.all().find(({ live }) => live)?.sessionKey ?? (await sessionKeys.find(CONNECTION));
    const running = turns.running(sessionKey.wireId);
    const extension = { from: 'editor', request, effect: 'unknown' } as const;
    if (running) return await deps.extension(extension, running);
    const own = await sessions.openOwn(request, sessionKey);
    try {
      await deps.extension(extension, own);
    } finally {
      own.finish({ state: 'COMPLETED', summary: `the editor called ${request.method.slice(0, 100)}` });
    }
  }

  function request(frame: Request): void {
    const { method } = frame;
    const id = sameId(idOf(frame));
    const judged = judgeFrame('editor', 'request', method);
    if (isOwnId(id)) refused.refuse('editor', frame, 'ids that begin with gw: are taken');
    else if (deciding.has(id) || wires.calls.get(id)) {
      refused.refuse('editor', frame, 'a request with this id has no answer yet', { anonymous: true });
    } else if (judged.handling === 'refuse') refused.refuse('editor', frame, judged.reason);
    else if (method === 'initialize') {
      deps.greeted(frame);
      greeted(frame);
      wires.agent.send(frame.line);
      void passing.note(frame, person);
    } else if (isOurs(frame)) decide(id, frame, decided(frame));
    else if (method === HITL_RESPOND && answers(id, frame)) return;
    else if (judged.handling === 'act' && !judged.row) decide(id, frame, extended(frame));
    else {
      const passed = passing.pass(frame, person);
      wires.calls.expect({ method, id: idOf(frame) });
      wires.agent.sendAfter(passed, () => frame.line);
      passed.catch((why) => {
        wires.calls.forget(idOf(frame));
        wires.editor.send(failedRequest(idOf(frame), why));
      });
    }
  }

  /** The answer to a question of the agent is one in the log first. */
  function answers(id: string, frame: Request): boolean {
    const answering = deps.hitl.responded(frame);
    if (answering) decide(id, frame, answering);
    return answering !== undefined;
  }

  function decide(id: string, frame: Request, work: Promise<void>): void {
    deciding.add(id);
    work
      .catch((thrown) => {
        const { kind, message } = asFault(thrown);
        if (kind === 'invalid_request') refused.refuse('editor', frame, message, { code: -32602 });
        else wires.editor.send(failedRequest(idOf(frame), thrown));
      })
      .finally(() => deciding.delete(id));
  }

  function isOurs(frame: Request): boolean {
    const { method } = frame;
    return (
      method === 'session/prompt' || OPENS.includes(method) || CLOSES.includes(method) || sessions.switchesMode(frame)
    );
  }

  function greeted(frame: Request): void {
    const answered = (response: Response) => {
      initialized(response.message.result);
      wires.editor.send(additions ? restorable(response) : response.line);
    };
    wires.calls.expect({ method: frame.method, id: idOf(frame), answered });
  }

  function notified(frame: Notification): void {
    const { sessionId, requestId } = paramsOf(frame);
    if (frame.method === 'session/cancel') {
      const wireId = textOf(sessionId);
      const turn = turns.running(wireId ?? '');
      if (turn) turn.canceled = 'by_editor';
      if (wireId) stopped(frame, turn);
      else refused.refuse('editor', frame, 'session/cancel needs a sessionId', { code: -32602 });
    } else if (frame.method === '$/cancel_request') {
      const id = JSON.stringify(requestId ?? null);
      sessions.takenBack(id);
      stopped(frame, prompts.turnOf(id));
    } else wires.agent.sendAfter(passing.pass(frame, person), () => frame.line);
  }

  /** A cancel needs no decision: it is forwarded to the agent and recorded at once. */
  function stopped(frame: Notification, turn: Turn | undefined): void {
    wires.agent.send(frame.line);
    if (turn) cancelTask(turn, 'canceled in the editor');
  }

  return {
    greeted,
    look(frame: Frame): LineVerdict {
      switch (frame.kind) {
        case 'response': {
          const entry = wires.asks.take(frame);
          if (!entry) return () => refused.dropped('editor', frame, 'no request waits for this response');
          const { answered } = entry;
          return answered ? () => answered(frame) : true;
        }
        case 'request':
          return () => request(frame);
        case 'notification': {
          const judged = judgeFrame('editor', 'notification', frame.method);
          if (judged.handling === 'refuse') return () => refused.refuse('editor', frame, judged.reason);
          return () => notified(frame);
        }
        case 'batch':
          return () => refused.refuse('editor', frame, 'one JSON-RPC object at a time');
        case 'unreadable':
          return () => {
            refused.unreadable('editor', frame);
            if (frame.answers) answeredFor(wires.asks, frame, wires.agent);
          };
        case 'noise':
          return () => refused.unreadable('editor', unreadable(frame.line, NOT_JSON, 'the line is not JSON'));
        case 'blank':
          return () => {};
      }
    },
  };
}
