/**
 * Questions to people, as the editor shows them. A question exists when the log has it, and the first answer counts, from any
 * door: the editor's choice is an answer in the log before the agent receives it, and a question answered elsewhere is
 * withdrawn from the editor.
 */

import { STANDING_GRANT } from '../../../../mappings/acp.ts';
import {
  type Actor,
  type AskRecord,
  asFault,
  asText,
  type Bridge,
  type CommandBody,
  dialogText,
  type Json,
  type JsonObject,
  type Logger,
  type PendingAct,
} from '../../../../src/index.ts';
import { sameId } from '../../../../src/transport/json-rpc/raw-id.ts';
import { objectOf, textOf, within } from '../../shapes.ts';
import type { WireOption } from '../../translate.ts';
import { idOf, type Request, type Response } from '../frames/frame.ts';
import type { Wires } from '../frames/pending.ts';
import type { Covered } from '../from-agent/approved-acts.ts';
import type { Turn } from '../from-editor/turns.ts';
import { formLine, ownCall, permissionLine, type Showing } from './dialogs.ts';

type AnswerBody = Omit<CommandBody<'ask.answer'>, 'ask_id'>;

/** The meaning of an editor's response, and whether its bytes may go on to the agent. */
export interface Read {
  readonly body: AnswerBody;
  readonly passes: boolean;
}

/** An act that may need a question. */
export interface Expected {
  /** The agent's own question, or one of ours about an act. */
  readonly shown: { readonly request: Request; readonly line: Buffer } | { readonly toolCall: JsonObject };
  read(response: Response): Read;
  /** An earlier approval that covers this act. */
  readonly covered?: { readonly by: Actor; readonly reason: string } | undefined;
  onShown?(): void;
  /** This relay did not raise the question. */
  readonly unexpected?: true;
}

export interface Questions {
  /** Called before the gate decides: how to show the question, under its id in the log. */
  expect(turn: Turn, key: string, expected: Expected): Expectation;
  /** A question of the agent that the editor may show by itself; then `silent`, and only its id is needed. */
  announce(turn: Turn, key: string, announced: Announced): Pick<Expectation, 'done'>;
  asked(ask: AskRecord, turn: Turn): void;
  answered(askId: string, state: string, turn: Turn): void;
  /** The agent has withdrawn its question at the editor itself, by its request id. */
  takenBack(id: string): void;
}

export interface Announced {
  readonly silent: boolean;
  asked(askId: string): void;
}

export interface Expectation {
  /** The editor's response, when the editor answered; undefined when another door did. */
  words(): Promise<Buffer | undefined>;
  /** Whether the answer that counts was given in this editor. */
  here(): Promise<boolean>;
  /** The agent has its answer, so no further answer is needed. */
  done(): void;
}

type Entry = Expected & { dialog: Dialog | undefined; over: boolean };

interface Dialog {
  id: string;
  answering: Promise<boolean> | undefined;
  bytes: Buffer | undefined;
}

interface QuestionsDeps {
  readonly bridge: Bridge;
  readonly person: Actor;
  readonly wires: Wires;
  readonly log: Logger;
  /** The approval of exactly this call, which the agent asked about before it made it at a tool server of ours. */
  readonly covering: (turn: Turn, act: PendingAct) => Covered | undefined;
}

export function createQuestions({ bridge, person, wires, log, covering }: QuestionsDeps): Questions {
  const expecting = new WeakMap<Turn, Map<string, Entry>>();
  const announced = new WeakMap<Turn, Map<string, Announced>>();
  const open = new Map<string, Dialog>();
  /** Questions whose act is being looked up. */
  const showing = new Set<string>();
  const withdrawn = (dialog: Dialog | undefined, turn: Turn) => {
    // An editor that canceled the turn closes its dialogs itself.
    if (dialog && !dialog.answering && turn.canceled !== 'by_editor') wires.withdraw(dialog.id);
  };

  const of = (turn: Turn) => {
    const known = expecting.get(turn) ?? new Map<string, Entry>();
    expecting.set(turn, known);
    return known;
  };

  async function answer(ask_id: string, body: AnswerBody, actor: Actor): Promise<boolean> {
    try {
      await bridge.submit({ kind: 'ask.answer', actor, body: { ask_id, ...body } });
      return true;
    } catch (cause) {
      // Another answer was first, or this actor may not answer; either way this answer did not count.
      log.info({ err: asFault(cause), ask: ask_id }, 'an answer from the editor did not count');
      return false;
    }
  }

  function mayAnswer({ to }: AskRecord): boolean {
    return to.length === 0 || to.includes(person.id) || to.some((word) => person.scopes.includes(word));
  }

  /** A question that was closed while its act was looked up is not shown. */
  async function show(ask: AskRecord, turn: Turn, expected: Entry): Promise<void> {
    showing.add(ask.id);
    const act =
      ask.kind === 'input'
        ? undefined
        : await bridge.pendingAct({ ...person, interactive: true }, ask.id).catch(() => undefined);
    if (!showing.delete(ask.id) || expected.over) return;
    const covered = act && expected.unexpected ? covering(turn, act) : undefined;
    if (covered) return void (await answer(ask.id, { approved: true, reason: covered.reason }, covered.by));
    const shown: Showing = { act, dialog: dialogText(ask, act) };
    const dialog: Dialog = { id: '', answering: undefined, bytes: undefined };
    expected.dialog = dialog;
    open.set(ask.id, dialog);
    const onResponse = (response: Response) => {
      const { body, passes } = expected.read(response);
      // An act that was not shown whole can only be refused here; the question stays open for others.
      if (!shown.dialog.whole && !isRefusal(body, response)) return;
      dialog.bytes = passes ? response.line : undefined;
      dialog.answering = answer(ask.id, body, { ...person, interactive: true });
    };
    if ('request' in expected.shown) {
      const { request, line } = expected.shown;
      dialog.id = idOf(request);
      wires.asks.expect({ method: request.method, id: dialog.id, answered: onResponse });
      wires.editor.send(
        request.method === 'session/request_permission'
          ? permissionLine(request, line, shown)
          : formLine(request, line),
      );
    } else {
      const { toolCall } = expected.shown;
      const options = shown.dialog.whole ? OWN_OPTIONS : OWN_OPTIONS.slice(1);
      const params = { sessionId: turn.sessionKey.wireId, toolCall: ownCall(toolCall, shown), options };
      dialog.id = wires.put('session/request_permission', params, onResponse);
    }
    expected.onShown?.();
  }

  return {
    expect(turn, key, expected) {
      const entry: Entry = { ...expected, dialog: undefined, over: false };
      of(turn).set(key, entry);
      return {
        async words() {
          const { dialog } = entry;
          return dialog?.answering && (await dialog.answering) ? dialog.bytes : undefined;
        },
        here: async () => (await entry.dialog?.answering) === true,
        done() {
          entry.over = true;
          if (of(turn).get(key) === entry) of(turn).delete(key);
          withdrawn(entry.dialog, turn);
        },
      };
    },

    announce(turn, key, entry) {
      const all = announced.get(turn) ?? new Map<string, Announced>();
      announced.set(turn, all.set(key, entry));
      return { done: () => void all.delete(key) };
    },

    asked(ask, turn) {
      const key = asText(ask.metadata.key ?? ask.tool_call_id ?? ask.id);
      const own = announced.get(turn)?.get(key);
      own?.asked(ask.id);
      if (own?.silent) return;
      const expected: Entry = of(turn).get(key) ?? { ...unexpected(ask), dialog: undefined, over: false };
      if (expected.covered) {
        const { by, reason } = expected.covered;
        void answer(ask.id, { approved: true, reason }, by);
      } else if (mayAnswer(ask)) {
        show(ask, turn, expected).catch((cause) => {
          log.error({ err: cause, ask: ask.id }, 'a question could not be shown in the editor; it is open elsewhere');
        });
      }
    },

    takenBack(id) {
      for (const dialog of open.values()) if (sameId(dialog.id) === sameId(id)) wires.asks.giveUp(dialog.id);
    },

    answered(askId, _state, turn) {
      showing.delete(askId);
      const dialog = open.get(askId);
      open.delete(askId);
      withdrawn(dialog, turn);
    },
  };
}

/** An explicit refusal, not a dismissed dialog. */
function isRefusal({ approved }: AnswerBody, { message }: Response): boolean {
  return approved === false && within(message, 'result', 'outcome', 'outcome') === 'selected';
}

const OWN_OPTIONS = [
  { optionId: 'approve', name: 'Allow', kind: 'allow_once' },
  { optionId: 'reject', name: 'Reject', kind: 'reject_once' },
];

/** A question that this relay did not raise: whether work may begin at all, or a call at one of our tool servers. */
function unexpected(ask: AskRecord): Expected {
  const toolCall = { toolCallId: ask.id, kind: 'other', status: 'pending' };
  return { shown: { toolCall }, read: readOwn, unexpected: true };
}

/** Our questions have two options, and anything but the first is a no. */
export function readOwn(response: Response): Read {
  const chosen = within(response.message, 'result', 'outcome', 'optionId');
  return { body: chosen === 'approve' ? { approved: true } : { approved: false, reason: SAID_NO }, passes: false };
}

/** By the kind of the option, never by its name or position. An unknown kind is not a yes. */
export function readChoice(response: Response, options: readonly WireOption[]): Read & { readonly lasting: boolean } {
  const { outcome, optionId } = objectOf(within(response.message, 'result', 'outcome')) ?? {};
  const option = options.find((each) => each.optionId === optionId);
  if (outcome !== 'selected' || !option) {
    const why = outcome === 'cancelled' ? 'dismissed in the editor' : 'the editor could not ask';
    // The agent could take an unknown option for a yes that we took for a no.
    return { body: { approved: false, reason: why }, passes: outcome !== 'selected', lasting: false };
  }
  const lasting = option.kind === STANDING_GRANT;
  if (lasting || option.kind === 'allow_once') {
    const reason = lasting ? `from now on, without being asked: ${option.name ?? option.optionId}` : undefined;
    return { body: { approved: true, ...(reason && { reason }) }, passes: true, lasting };
  }
  const known = option.kind === 'reject_once' || option.kind === 'reject_always';
  return { body: { approved: false, reason: SAID_NO }, passes: known, lasting: false };
}

/** A form: its values, or a no. */
export function readForm(response: Response): Read {
  const { action, content } = objectOf(within(response.message, 'result')) ?? {};
  if (action !== 'accept') return { body: { approved: false, reason: textOf(action) ?? SAID_NO }, passes: true };
  return { body: { value: (content ?? null) as Json }, passes: true };
}

const SAID_NO = 'said no in the editor';
