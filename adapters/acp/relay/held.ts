/**
 * Files and terminals the agent asks its editor for. They pass through us, so they are held: decided, written down, and only
 * then handed to the editor; what it answers is written down before the agent has it. Content is never logged, its hash is.
 */
import { isAbsolute, resolve } from 'node:path';
import type { HeldEffect, Ids, JsonObject, ProposedAction, ToolResult } from '../../../src/index.ts';
import { sha256, shownPath } from '../effects.ts';
import { numberOf, objectOf, textOf, within } from '../shapes.ts';
import { toWireError } from '../translate.ts';
import type { Approvals, Covered } from './approvals.ts';
import { encodeError, idOf, paramsOf, type Request, type Response } from './frame.ts';
import { repeatsNames, withMember } from './members.ts';
import { type Questions, readOwn } from './questions.ts';
import { refusedError } from './refusals.ts';
import type { Begun, Turn } from './turns.ts';
import type { Wires } from './wires.ts';

export interface HeldDeps {
  readonly wires: Wires;
  readonly questions: Questions;
  readonly approvals: Approvals;
  readonly ids: Ids;
}

export interface Held {
  file(request: Request, turn: Turn, withdrawn: AbortSignal): Promise<void>;
  /** Puts one act to the gate and, if it may, to the editor. */
  act(request: Request, turn: Turn, withdrawn: AbortSignal, act: HeldAct): Promise<void>;
}

export interface HeldAct {
  readonly action: Omit<ProposedAction, 'tool_call_id'>;
  /** What a person is shown, should one be asked. */
  readonly title: string;
  readonly kind: string;
  readonly covered?: Covered | undefined;
  /** The request with what a rule changed about it. */
  rewritten(line: Buffer, args: JsonObject): Buffer;
  /** Runs it; what it resolves with goes on record. */
  run(line: Buffer, begun: Begun, callId: string): Promise<ToolResult>;
  /** The answer the agent gets, once the result is on record; undefined when it has it already. */
  answer(): Buffer | undefined;
  refused(reason: string): Buffer | undefined;
}

export function createHeld({ wires, questions, approvals, ids }: HeldDeps): Held {
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
    const { action, title, kind, covered } = wanted;
    const expectation = questions.expect(turn, callId, {
      shown: { toolCall: { toolCallId: callId, title, kind, status: 'pending' } },
      read: readOwn,
      covered,
    });
    try {
      const effect: HeldEffect = (args) => {
        const asked = JSON.stringify(args) === JSON.stringify(action.arguments);
        // Two readers must not read two things where something was decided about one.
        const same = asked && !repeatsNames(request.line, 'params');
        const plain = same ? request.line : wanted.rewritten(reencoded(request), args);
        return wanted.run(plain, begun, callId);
      };
      const done = await begun.sink.act({ ...action, tool_call_id: callId }, effect, withdrawn);
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
    const { scribe } = await turn.begun;
    const { cwd } = turn.place;
    const params = paramsOf(request);
    const given = textOf(params.path) ?? '';
    const path = isAbsolute(given) ? resolve(given) : resolve(cwd, given);
    const writing = request.method === 'fs/write_text_file';
    const content = typeof params.content === 'string' ? params.content : '';
    const linked = scribe.reading.servedBy({ path });
    let response: Response | undefined;
    await act(request, turn, withdrawn, {
      action: {
        kind: writing ? 'fs.write' : 'fs.read',
        tool: writing ? 'fs.write' : 'fs.read',
        target: path,
        effect: writing ? 'write' : 'read',
        cwd,
        ...(writing && { changes: [{ path, after: content }] }),
        arguments: writing
          ? { path: given, sha256: sha256(content), bytes: Buffer.byteLength(content) }
          : { path: given, line: numberOf(params.line) ?? null, limit: numberOf(params.limit) ?? null },
        attributes: { protocol: 'acp', ...(linked && { call: linked.id, linked_by: linked.by }) },
      },
      title: `${writing ? 'Write' : 'Read'} ${shownPath(cwd, path)}`,
      kind: writing ? 'edit' : 'read',
      covered: approvals.covering(turn, { path }),
      rewritten: (line, args) => withMember(line, ['params', 'path'], args.path ?? given),
      async run(line) {
        response = await wires.askEditor(request, line);
        const failed = failureOf(response);
        if (failed && !writing) remember(turn, path, NOT_THERE);
        if (failed) return failed;
        if (!writing) {
          const output = readBack(response);
          // A part of a file says nothing about the whole of it.
          if (params.line === undefined && params.limit === undefined) remember(turn, path, String(output.sha256));
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

/** As parsed, so that a name that stood twice stands once. */
function reencoded(request: Request): Buffer {
  return repeatsNames(request.line, 'params')
    ? Buffer.from(`${JSON.stringify({ ...request.message, id: undefined }).slice(0, -1)},"id":${idOf(request)}}\n`)
    : request.line;
}
