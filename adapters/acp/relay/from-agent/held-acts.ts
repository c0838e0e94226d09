/**
 * File and terminal requests of the agent to its editor. They pass through us, so they are held: decided, recorded, and only
 * then forwarded; the editor's response is recorded before the agent receives it. Content read is never logged, only its hash.
 */

import { normalize } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { HeldEffect, Ids, Json, JsonObject, ProposedAction, ToolResult } from '../../../../src/index.ts';
import { asText, own } from '../../../../src/index.ts';
import { sha256, shownPath } from '../../client/acts/effects.ts';
import { realPath } from '../../real-path.ts';
import { refusedActText } from '../../refusals.ts';
import { objectOf, textOf, within } from '../../shapes.ts';
import { toWireError } from '../../translate.ts';
import { type Questions, readOwn } from '../editor-view/questions.ts';
import { encodeError, idOf, paramsOf, type Request, type Response } from '../frames/frame.ts';
import { withMember } from '../frames/members.ts';
import type { Wires } from '../frames/pending.ts';
import { refusedError } from '../frames/refusals.ts';
import type { Begun, Turn } from '../from-editor/turns.ts';
import { invalid, pathIn, wholeNumber } from './act-params.ts';
import type { Approvals, Covered } from './approved-acts.ts';

export interface HeldDeps {
  readonly wires: Wires;
  readonly questions: Questions;
  readonly approvals: Approvals;
  readonly ids: Ids;
  /** The agent's name for itself. */
  readonly agent: () => string;
}

export interface HeldActs {
  file(request: Request, turn: Turn, withdrawn: AbortSignal): Promise<void>;
  /** Resolves when the file requests of this turn are answered, or the time for that is over. */
  settled(turn: Turn): Promise<void>;
  /** Submits one act to the gate and, if it is allowed, to the editor. */
  act(request: Request, turn: Turn, withdrawn: AbortSignal, act: HeldAct): Promise<void>;
}

export interface HeldAct {
  readonly action: Omit<ProposedAction, 'tool_call_id' | 'claims' | 'cwd'>;
  /** The agent's own description, where it gave one. */
  readonly claims?: { readonly title?: string; readonly kind?: string };
  /** The title of a question about it. */
  readonly title: string;
  readonly kind: string;
  readonly content?: readonly Json[];
  readonly covered?: Covered | undefined;
  /** The request with the changes of a rule. */
  rewritten(line: Buffer, args: JsonObject): Buffer;
  /** Runs the act; the result is recorded. */
  run(line: Buffer, begun: Begun, callId: string): Promise<ToolResult>;
  /** The agent's response, once the result is recorded; undefined when it was already sent. */
  answer(): Buffer | undefined;
  refused(reason: string): Buffer | undefined;
}

export function createHeld({ wires, questions, approvals, ids, agent }: HeldDeps): HeldActs {
  /** The content of files when they last went through us. */
  const read = new WeakMap<Turn, Map<string, string>>();
  const remember = (turn: Turn, path: string, hash: string) => {
    const known = read.get(turn) ?? new Map<string, string>();
    known.set(path, hash);
    read.set(turn, known);
  };

  async function act(request: Request, turn: Turn, withdrawn: AbortSignal, wanted: HeldAct): Promise<void> {
    const begun = await turn.begun;
    await begun.recorder.settled();
    const callId = ids.next('held');
    const { action, title, kind, covered, content } = wanted;
    const shown = { toolCallId: callId, title, kind, status: 'pending', rawInput: action.arguments ?? {} };
    const expectation = questions.expect(turn, callId, {
      shown: { toolCall: { ...shown, ...(content && { content: [...content] }) } },
      read: readOwn,
      covered,
    });
    try {
      const effect: HeldEffect = (args) => {
        const asked = JSON.stringify(args) === JSON.stringify(action.arguments);
        return wanted.run(asked ? request.line : wanted.rewritten(request.line, args), begun, callId);
      };
      const claims = { agent: agent(), ...wanted.claims };
      const proposed = { ...action, tool_call_id: callId, claims, cwd: turn.sessionKey.cwd };
      const done = await begun.sink.act(proposed, effect, withdrawn);
      const refusal = done.kind === 'refused' ? refusedActText(done) : undefined;
      if (refusal !== undefined && !(await expectation.here())) {
        const card = turn.cards.refused(shown, refusal, { sessionId: turn.sessionKey.wireId });
        if (card) wires.editor.send(card);
      }
      const bytes = refusal === undefined ? wanted.answer() : wanted.refused(refusal);
      if (bytes) wires.agent.send(bytes);
    } catch (thrown) {
      // A completed act keeps its response; an act that was not decided is not done.
      wires.agent.send(wanted.answer() ?? encodeError(idOf(request), toWireError(thrown)));
    } finally {
      expectation.done();
    }
  }

  /** Requests the editor is working on. */
  const asked = new WeakMap<Turn, Set<Promise<void>>>();

  function file(request: Request, turn: Turn, withdrawn: AbortSignal): Promise<void> {
    const doing = oneFile(request, turn, withdrawn);
    const all = asked.get(turn) ?? new Set();
    asked.set(turn, all.add(doing));
    return doing.finally(() => all.delete(doing));
  }

  async function oneFile(request: Request, turn: Turn, withdrawn: AbortSignal): Promise<void> {
    const covering = approvals.covering(turn);
    const { cwd } = turn.sessionKey;
    const params = paramsOf(request);
    const asked = pathIn(params.path);
    const writing = request.method === 'fs/write_text_file';
    const content = writing ? contentIn(params) : '';
    const [first, limit] = [wholeNumber(params, 'line'), wholeNumber(params, 'limit')];
    const lexical = normalize(asked);
    const path = await realPath(lexical);
    const { recorder } = await turn.begun;
    const linked = recorder.reader.servedBy({ path: lexical });
    let response: Response | undefined;
    await act(request, turn, withdrawn, {
      action: {
        kind: writing ? 'fs.write' : 'fs.read',
        tool: writing ? 'fs.write' : 'fs.read',
        // The real path: a symbolic link must not bypass a rule about the file behind it.
        target: path,
        effect: writing ? 'write' : 'read',
        ...(writing && { changes: [{ path, after: content }] }),
        arguments: writing ? { path: asked, content } : { path: asked, line: first, limit },
        attributes: { protocol: 'acp', ...(linked && { call: linked.id, linked_by: linked.by }) },
      },
      title: `${writing ? 'Write' : 'Read'} ${shownPath(cwd, path)}`,
      kind: writing ? 'edit' : 'read',
      ...(writing && { content: [{ type: 'diff', path: lexical, oldText: null, newText: content }] }),
      covered: covering(writing ? { operation: 'write', path, content } : { operation: 'read', path }),
      rewritten(line, args) {
        const members = writing ? ['path', 'content'] : ['path', 'line', 'limit'];
        return members.reduce((next, name) => {
          const value = own(args, name);
          return value === undefined || value === (own(params, name) ?? null)
            ? next
            : withMember(next, ['params', name], value);
        }, line);
      },
      async run(line) {
        response = await wires.askEditor(request, line);
        const failed = failureOf(response);
        if (failed && !writing) remember(turn, path, NOT_THERE);
        if (failed) return failed;
        if (!writing) {
          const output = readBack(response);
          // A part of a file says nothing about the whole.
          if (params.line === undefined && params.limit === undefined) remember(turn, path, asText(output.sha256));
          return { status: 'ok', output };
        }
        const shown = shownPath(cwd, path);
        recorder.wrote(path, shown);
        const before = read.get(turn)?.get(path);
        const operation = before === NOT_THERE ? 'create' : 'modify';
        const before_sha256 = before && before !== NOT_THERE ? before : null;
        const after_sha256 = sha256(content);
        const write = { type: 'fs_write', path: shown, operation, before_sha256, after_sha256 } as const;
        remember(turn, path, after_sha256);
        return { status: 'ok', output: null, effects: [write] };
      },
      answer: () => response?.line,
      refused: (reason) => encodeError(idOf(request), refusedError(reason)),
    });
  }

  return {
    file,
    act,
    async settled(turn) {
      await Promise.race([Promise.allSettled(asked.get(turn) ?? []), pause(SETTLE_MS, undefined, { ref: false })]);
    },
  };
}

/** An editor responds to these at once; one that asks a person first is not waited for. */
const SETTLE_MS = 500;

/** Stands for a file that could not be read the last time. */
const NOT_THERE = '';

function readBack({ message }: Response): JsonObject {
  const content = within(message, 'result', 'content');
  const text = typeof content === 'string' ? content : '';
  return { sha256: sha256(text), bytes: Buffer.byteLength(text), source: 'editor_buffer' };
}

export function failureOf({ message }: Response): ToolResult | undefined {
  const error = objectOf(message.error);
  if (!error) return undefined;
  return { status: 'error', output: null, error: textOf(error.message) ?? 'the editor refused' };
}

function contentIn(params: JsonObject): string {
  if (typeof params.content !== 'string') throw invalid('content', 'must be a text');
  return params.content;
}
