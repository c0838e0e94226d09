/**
 * Requests without a row, and vendor requests that have an effect. Their effect is unknown, so each is an act: decided by rules
 * or a person, recorded, and only then forwarded, from either side.
 */
import { HOST_CALL, HOST_OPERATIONS } from '../../../../mappings/acp-harn.ts';
import type { Effect, Ids, Json, JsonObject } from '../../../../src/index.ts';
import { hostCommand } from '../../harn.ts';
import { refusedActText } from '../../refusals.ts';
import { lookup, objectOf, textOf } from '../../shapes.ts';
import { toWireError } from '../../translate.ts';
import { type Questions, readOwn } from '../editor-view/questions.ts';
import { encodeError, idOf, type Request, type Response } from '../frames/frame.ts';
import { withMember } from '../frames/members.ts';
import type { Wires } from '../frames/pending.ts';
import { refusedError } from '../frames/refusals.ts';
import type { Side } from '../frames/refused-frames.ts';
import type { Turn } from '../from-editor/turns.ts';
import { failureOf } from './held-acts.ts';

export interface ExtensionDeps {
  readonly wires: Wires;
  readonly questions: Questions;
  readonly ids: Ids;
  /** The agent's name for itself. */
  readonly agent: () => string;
}

export interface Extension {
  readonly from: Side;
  readonly request: Request;
  readonly effect: Effect;
}

export type ActExtension = (extension: Extension, turn: Turn, withdrawn?: AbortSignal) => Promise<void>;

export function createExtensions({ wires, questions, ids, agent }: ExtensionDeps): ActExtension {
  /** Settles when the sender has its response. */
  return async ({ from, request, effect }, turn, withdrawn) => {
    const back = from === 'agent' ? wires.agent : wires.editor;
    const { sink, recorder } = await turn.begun;
    await recorder.settled();
    const callId = ids.next('extension');
    const { method } = request;
    const args = argumentsOf(request.message.params);
    const host = from === 'agent' && method === HOST_CALL ? hostAct(args) : undefined;
    const title = `${from === 'agent' ? 'The agent' : 'The editor'} calls ${method.slice(0, 100)}`;
    const expectation = questions.expect(turn, callId, {
      shown: { toolCall: { toolCallId: callId, title, kind: 'other', status: 'pending', rawInput: args } },
      read: readOwn,
    });
    let response: Response | undefined;
    try {
      const done = await sink.act(
        {
          kind: 'extension',
          tool: method,
          tool_call_id: callId,
          effect,
          arguments: args,
          attributes: { protocol: 'acp', from },
          ...host,
          ...(from === 'agent' && { claims: { agent: agent() } }),
          cwd: turn.sessionKey.cwd,
        },
        async (allowed) => {
          const same = JSON.stringify(allowed) === JSON.stringify(host?.arguments ?? args);
          const where = host ? ['params', 'args'] : ['params'];
          const line = same ? request.line : withMember(request.line, where, allowed);
          response = await (from === 'agent' ? wires.askEditor(request, line) : wires.askAgent(request, line));
          return failureOf(response) ?? { status: 'ok', output: null };
        },
        withdrawn,
      );
      if (done.kind === 'refused') back.send(encodeError(idOf(request), refusedError(refusedActText(done))));
      else back.send(response?.line ?? encodeError(idOf(request), toWireError(new Error(done.result.error))));
    } catch (thrown) {
      back.send(response?.line ?? encodeError(idOf(request), toWireError(thrown)));
    } finally {
      expectation.done();
    }
  };
}

function argumentsOf(params: Json | undefined): JsonObject {
  return objectOf(params) ?? (params === undefined ? {} : { params });
}

/** A call to the editor as the agent's host, by what it does: a command is one, whatever carries it. */
function hostAct(params: JsonObject) {
  const tool = textOf(params.name);
  const effect = lookup(HOST_OPERATIONS, tool);
  if (!tool || !effect) return undefined;
  const args = objectOf(params.args) ?? {};
  if (effect !== 'execute') return { tool, effect, arguments: args };
  return { kind: 'terminal' as const, tool, effect, arguments: args, target: hostCommand(args).join(' ') || tool };
}
