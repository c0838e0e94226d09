/**
 * Files and terminals the agent asks its editor for. They pass through us, so they are held: decided, written down, and only
 * then handed to the editor; what it answers is written down before the agent has it. What was read is never logged, its hash is.
 */

import { normalize } from 'node:path';
import type { HeldEffect, Ids, Json, JsonObject, ProposedAction, ToolResult } from '../../../src/index.ts';
import { asText, own } from '../../../src/index.ts';
import { sha256, shownPath } from '../effects.ts';
import { realPath } from '../real-path.ts';
import { objectOf, textOf, within } from '../shapes.ts';
import { toWireError } from '../translate.ts';
import type { Approvals, Covered } from './approvals.ts';
import { encodeError, idOf, paramsOf, type Request, type Response } from './frame.ts';
import { withMember } from './members.ts';
import { invalid, pathIn, wholeNumber } from './params.ts';
import { type Questions, readOwn } from './questions.ts';
import { refusedError } from './refusals.ts';
import type { Begun, Turn } from './turns.ts';
import type { Wires } from './wires.ts';

export interface HeldDeps {
  readonly wires: Wires;
  readonly questions: Questions;
  readonly approvals: Approvals;
  readonly ids: Ids;
  /** The agent, as it names itself. */
  readonly agent: () => string;
}

export interface Held {
  file(request: Request, turn: Turn, withdrawn: AbortSignal): Promise<void>;
  /** Puts one act to the gate and, if it may, to the editor. */
  act(request: Request, turn: Turn, withdrawn: AbortSignal, act: HeldAct): Promise<void>;
}

export interface HeldAct {
  readonly action: Omit<ProposedAction, 'tool_call_id' | 'claims' | 'cwd'>;
  /** The agent's own words about it, where it said any. */
  readonly claims?: { readonly title?: string; readonly kind?: string };
  /** What a person is shown, should one be asked. */
  readonly title: string;
  readonly kind: string;
  readonly content?: readonly Json[];
  readonly covered?: Covered | undefined;
  /** The request with what a rule changed about it. */
  rewritten(line: Buffer, args: JsonObject): Buffer;
  /** Runs it; what it resolves with goes on record. */
  run(line: Buffer, begun: Begun, callId: string): Promise<ToolResult>;
  /** The answer the agent gets, once the result is on record; undefined when it has it already. */
  answer(): Buffer | undefined;
  refused(reason: string): Buffer | undefined;
}

export function createHeld({ wires, questions, approvals, ids, agent }: HeldDeps): Held {
  /** What files held when they last went through us. */
  const read = new WeakMap<Turn, Map<string, string>>();
  const remember = (turn: Turn, path: string, hash: string) => {
    const known = read.get(turn) ?? new Map<string, string>();
    known.set(path, hash);
    read.set(turn, known);
  };

  async function act(request: Request, turn: Turn, withdrawn: AbortSignal, wanted: HeldAct): Promise<void> {
    const begun = await turn.begun;
    await begun.scribe.settled();
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
      const proposed = { ...action, tool_call_id: callId, claims, cwd: turn.place.cwd };
      const done = await begun.sink.act(proposed, effect, withdrawn);
      const bytes = done.kind === 'refused' ? wanted.refused(done.reason) : wanted.answer();
      if (bytes) wires.agent.send(bytes);
    } catch (thrown) {
      // What was done is done and its answer stands; what was not decided is not done.
      wires.agent.send(wanted.answer() ?? encodeError(idOf(request), toWireError(thrown)));
    } finally {
      expectation.done();
    }
  }

  async function file(request: Request, turn: Turn, withdrawn: AbortSignal): Promise<void> {
    const { cwd } = turn.place;
    const params = paramsOf(request);
    const given = pathIn(params.path);
    const writing = request.method === 'fs/write_text_file';
    const content = writing ? contentIn(params) : '';
    const [first, limit] = [wholeNumber(params, 'line'), wholeNumber(params, 'limit')];
    const lexical = normalize(given);
    const path = await realPath(lexical);
    const { scribe } = await turn.begun;
    const linked = scribe.reading.servedBy({ path: lexical });
    let response: Response | undefined;
    await act(request, turn, withdrawn, {
      action: {
        kind: writing ? 'fs.write' : 'fs.read',
        tool: writing ? 'fs.write' : 'fs.read',
        // Where it really lies: a link is no way round a rule about the file behind it.
        target: path,
        effect: writing ? 'write' : 'read',
        ...(writing && { changes: [{ path, after: content }] }),
        arguments: writing ? { path: given, content } : { path: given, line: first, limit },
        attributes: { protocol: 'acp', ...(linked && { call: linked.id, linked_by: linked.by }) },
      },
      title: `${writing ? 'Write' : 'Read'} ${shownPath(cwd, path)}`,
      kind: writing ? 'edit' : 'read',
      ...(writing && { content: [{ type: 'diff', path: lexical, oldText: null, newText: content }] }),
      covered: approvals.covering(turn, writing ? { operation: 'write', path, content } : { operation: 'read', path }),
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
          // A part of a file says nothing about the whole of it.
          if (params.line === undefined && params.limit === undefined) remember(turn, path, asText(output.sha256));
          return { status: 'ok', output };
        }
        const shown = shownPath(cwd, path);
        scribe.wrote(path, shown);
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

  return { file, act };
}

/** A file that could not be read when it was last asked for. */
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
