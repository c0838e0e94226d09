/**
 * Questions of Harn agents in the relay: forwarded to the editor unchanged, and open in the log, so that they are in the inbox and
 * on the receipt. The first answer counts: the editor's own call is an answer in the log before the agent gets it, and an answer
 * from elsewhere reaches the agent as a call of ours.
 */
import { HITL_RESPOND } from '../../../../mappings/acp-harn.ts';
import {
  type Actor,
  asFault,
  asText,
  type Bridge,
  Fault,
  type JsonObject,
  type Logger,
} from '../../../../src/index.ts';
import { harnPayload } from '../../harn.ts';
import { hitlEnded, hitlKey, olderHitl, toCoreAnswer, toHitlAsk, toHitlResponse } from '../../hitl.ts';
import { textOf } from '../../shapes.ts';
import type { Questions } from '../editor-view/questions.ts';
import { paramsOf, type Request } from '../frames/frame.ts';
import type { Wires } from '../frames/pending.ts';
import type { Turn } from '../from-editor/turns.ts';

export interface Hitl {
  /** An update of the agent; others than questions are ignored. */
  reported(update: JsonObject, turn: Turn): void;
  /** A question in the form of the first revision. */
  requested(params: JsonObject, turn: Turn): void;
  /** Whether the editor's call answers one of these questions; then it is taken care of. */
  responded(request: Request): Promise<void> | undefined;
}

export interface HitlDeps {
  readonly bridge: Bridge;
  readonly person: Actor;
  readonly wires: Wires;
  readonly questions: Questions;
  readonly log: Logger;
  readonly agent: () => string;
  /** The editor shows these questions itself. */
  readonly shows: () => boolean;
}

interface Open {
  readonly withdrawn: AbortController;
  /** The question in the log; undefined when a rule has answered it. */
  readonly asked: Promise<string | undefined>;
  /** The editor's own call, whose bytes the agent gets. */
  request?: Request;
}

export function createHitl({ bridge, person, wires, questions, log, agent, shows }: HitlDeps): Hitl {
  const open = new Map<string, Open>();

  async function ask(reported: JsonObject, requestId: string, turn: Turn): Promise<void> {
    let asked: (id?: string) => void = () => {};
    const entry: Open = {
      withdrawn: new AbortController(),
      asked: new Promise((resolve) => {
        asked = resolve;
      }),
    };
    open.set(requestId, entry);
    const question = toHitlAsk(reported, { agent: agent(), cwd: turn.sessionKey.cwd }, entry.withdrawn.signal);
    // An editor without the profile is shown a yes-or-no question by us; a value it cannot give is asked for elsewhere.
    const silent = shows() || question.kind === 'input';
    const expectation = questions.announce(turn, hitlKey(requestId), { silent, asked });
    try {
      const { sink, recorder } = await turn.begun;
      await recorder.settled();
      const answer = await sink.ask(question);
      if (entry.withdrawn.signal.aborted) return;
      if (entry.request) wires.editor.send((await wires.askAgent(entry.request)).line);
      else {
        const { wireId: sessionId } = turn.sessionKey;
        await wires.request(HITL_RESPOND, { sessionId, ...toHitlResponse(reported, answer) });
      }
      for (const fact of hitlEnded(reported, question, answer)) await recorder.note(fact);
    } finally {
      open.delete(requestId);
      asked();
      expectation.done();
    }
  }

  /** Once for each id: some agents send the same question in both forms. */
  function question(fields: JsonObject, turn: Turn): void {
    const requestId = textOf(fields.requestId);
    if (!requestId || open.has(requestId)) return;
    ask(fields, requestId, turn).catch((cause) =>
      log.warn({ err: asFault(cause) }, 'a question of an agent could not be settled'),
    );
  }

  return {
    reported(update, turn) {
      if (update.sessionUpdate === 'hitl_request') question(harnPayload(update), turn);
      if (update.sessionUpdate === 'hitl_resolved') open.get(asText(harnPayload(update).requestId))?.withdrawn.abort();
    },
    requested: (params, turn) => question(olderHitl(params), turn),
    responded(request) {
      const params = paramsOf(request);
      const entry = open.get(textOf(params.request_id) ?? '');
      if (!entry) return undefined;
      return entry.asked.then(async (ask_id) => {
        if (ask_id === undefined) throw new Fault('conflict', 'the question has its answer already');
        entry.request = request;
        const body = { ask_id, ...toCoreAnswer(params) };
        try {
          await bridge.submit({ kind: 'ask.answer', actor: { ...person, interactive: true }, body });
        } catch (cause) {
          delete entry.request;
          throw cause;
        }
      });
    },
  };
}
