/**
 * Questions as a peer sees them, and the peer's next message as an answer. A question is sent twice: as text for a person, and
 * as data for a program; both say what an answer looks like, to a peer that may answer. A plain "yes" approves nothing unless
 * the peer asked for that: a task state authorises no one, so an approval must name what it approves.
 */

import type { Message, Part } from '@a2a-js/sdk';
import { EXTENSIONS } from '../../../mappings/a2a.ts';
import {
  type AskRecord,
  asText,
  type CommandBody,
  dialogText,
  isObject,
  type Json,
  type JsonObject,
  visibleText,
} from '../../../src/index.ts';
import { dataPart, textPart, wireMessage } from '../translate.ts';
import { Refusal } from './refusal.ts';

/** The answers this peer can give. */
export interface Answering {
  may(ask: AskRecord): boolean;
  /** A text of yes or no is an answer to an approval. */
  readonly texts: boolean;
}

export function toWireQuestion(
  asks: readonly AskRecord[],
  ids: { readonly messageId: string; readonly taskId: string; readonly contextId: string },
  answering: Answering,
): Message {
  const parts = asks.flatMap((ask) => {
    const may = answering.may(ask);
    return [textPart(wordsOf(ask, may, answering.texts)), dataPart(may ? described(ask) : described(ask, false))];
  });
  return wireMessage({ ...ids, parts, extensions: [EXTENSIONS.asks] });
}

/** For a person: the act as recorded, and how to answer, or where when the text does not show all of it. Messages leave this machine. */
function wordsOf(ask: AskRecord, may: boolean, texts: boolean): string {
  const { text, whole } = ask.kind === 'approval' ? dialogText(ask) : { text: visibleText(ask.question), whole: true };
  if (!may) return `${text}\nThis is answered on the agent's side, and not by you. The task goes on when it is.`;
  if (ask.kind === 'input') return text;
  const data = JSON.stringify({ askId: ask.id, approved: whole });
  if (!whole) return `${text}\nTo deny it, send a message to this task with the data part ${data}.`;
  const plain = texts ? ', or with the text yes or no' : '';
  return `${text}\nTo answer, send a message to this task with the data part ${data}, with false to deny${plain}.`;
}

/** `answerable` is absent where an answer is shown. */
function described(ask: AskRecord, answerable?: false): JsonObject {
  const about = {
    askId: ask.id,
    kind: ask.kind,
    question: ask.question,
    expiresAt: ask.expires_at,
    ...(ask.tool_call_id && { toolCallId: ask.tool_call_id }),
    ...(ask.reason && { reason: ask.reason }),
  };
  if (ask.kind === 'approval') {
    const { tool, server, target, effect, arguments: args } = ask.action as JsonObject;
    const action = { tool, server, target, effect, arguments: args };
    const known = Object.entries(action).filter(([, value]) => value !== undefined);
    const { whole } = dialogText(ask);
    const shown = { ...about, action: Object.fromEntries(known) as JsonObject, shown: whole ? 'whole' : 'in_part' };
    return answerable === false ? { ...shown, answerable } : { ...shown, answer: { askId: ask.id, approved: whole } };
  }
  // An empty text, because an SDK for Java cannot read a member that is null.
  const wanted = { ...about, ...(ask.schema && { schema: ask.schema as JsonObject }) };
  return answerable === false ? { ...wanted, answerable } : { ...wanted, answer: { askId: ask.id, value: '' } };
}

export function toWireAnswer(
  ask: AskRecord | undefined,
  payload: JsonObject,
  ids: { taskId: string; contextId: string },
): Message {
  const askId = asText(payload.ask_id);
  const part: Part =
    'approved' in payload
      ? dataPart({
          askId,
          approved: payload.approved ?? false,
          ...(typeof payload.reason === 'string' && { reason: payload.reason }),
        })
      : typeof payload.value === 'string'
        ? textPart(payload.value)
        : dataPart((payload.value ?? null) as Json);
  return wireMessage({ messageId: `answer-${ask?.id ?? askId}`, parts: [part], ...ids }, 'user');
}

/** The question that a message answers which names no task, if it can be an answer to one of these. */
export function answeredBy(
  message: Message,
  open: readonly AskRecord[],
  { texts, may }: Answering,
): AskRecord | undefined {
  const { said, text, id } = contentOf(message);
  if (id !== undefined) return open.find((ask) => ask.id === id);
  const [only, more] = open.filter(may);
  if (!only || more) return undefined;
  const plain = texts && (YES.test(text) || NO.test(text));
  return only.kind === 'input' || typeof said?.approved === 'boolean' || plain ? only : undefined;
}

interface Content {
  readonly data: readonly Json[];
  readonly text: string;
  /** The first data part that is an object. */
  readonly said: JsonObject | undefined;
  /** The question it names. */
  readonly id: string | undefined;
}

function contentOf({ parts }: Message): Content {
  const data = parts.flatMap(({ content }) => (content?.$case === 'data' ? [content.value as Json] : []));
  const text = parts
    .flatMap(({ content }) => (content?.$case === 'text' ? [content.value] : []))
    .join('\n')
    .trim();
  const said = data.map(objectOf).find((value) => value !== undefined);
  const id = said?.askId ?? said?.ask_id;
  return { data, text, said, id: typeof id === 'string' ? id : undefined };
}

/** Which question a message answers, and how. */
export function toCoreAnswer(
  message: Message,
  open: readonly AskRecord[],
  { texts, may }: Answering,
): CommandBody<'ask.answer'> {
  const { data, text, said, id: named } = contentOf(message);
  const ask = chosen(open, named, said);
  if (ask.kind === 'approval') {
    const verdict = verdictOf(said, texts ? text : '', () => may(ask));
    if (verdict.approved && !dialogText(ask).whole) throw new Refusal('INVALID_PARAMS', dialogText(ask).text);
    return { ask_id: ask.id, ...verdict, ...changedIn(said) };
  }
  if (said && typeof said.approved === 'boolean' && !said.approved) {
    return { ask_id: ask.id, approved: false, ...reasonOf(said) };
  }
  if (named && said) return { ask_id: ask.id, value: (said.value ?? said.answer ?? text) as Json };
  if (data.length > 0) return { ask_id: ask.id, value: data[0] as Json };
  if (text !== '') return { ask_id: ask.id, value: text };
  throw new Refusal('INVALID_PARAMS', 'the answer needs a text or a data part');
}

function chosen(open: readonly AskRecord[], named: string | undefined, said: JsonObject | undefined): AskRecord {
  const found = named ? open.find(({ id }) => id === named) : undefined;
  if (found) return found;
  if (named) throw new Refusal('INVALID_PARAMS', `the task is not asking ${named}`);
  // A yes or no can only answer an approval.
  const wants = typeof said?.approved === 'boolean' ? open.filter(({ kind }) => kind === 'approval') : open;
  const [only, more] = wants.length > 0 ? wants : open;
  if (!only || more) throw new Refusal('INVALID_PARAMS', 'several questions are open; name one as askId');
  return only;
}

const YES = /^(yes|y|approve|approved|allow|ok)[.!]?$/i;
const NO = /^(no|n|deny|denied|reject|rejected)[.!]?$/i;

function verdictOf(
  said: JsonObject | undefined,
  text: string,
  may: () => boolean,
): { approved: boolean; reason?: string } {
  if (typeof said?.approved === 'boolean') return { approved: said.approved, ...reasonOf(said) };
  if (YES.test(text)) return { approved: true };
  if (NO.test(text)) return { approved: false };
  throw new Refusal(
    'INVALID_PARAMS',
    may()
      ? 'this task waits for an approval: answer with a data part {"askId": ..., "approved": true or false}'
      : "this task waits for an approval that is given on the agent's side; it takes no messages until then",
  );
}

/** Arguments changed by the approver; a value that is not an object is refused. */
function changedIn(said: JsonObject | undefined): { arguments?: JsonObject } {
  const editedArguments = said?.arguments;
  if (editedArguments === undefined || editedArguments === null) return {};
  const args = objectOf(editedArguments);
  if (!args) throw new Refusal('INVALID_PARAMS', 'arguments have to be an object');
  return { arguments: args };
}

function reasonOf({ reason }: JsonObject): { reason?: string } {
  return typeof reason === 'string' && reason !== '' ? { reason } : {};
}

function objectOf(value: Json): JsonObject | undefined {
  return isObject(value) ? value : undefined;
}
