/**
 * Questions of peers built with Google's ADK: a data part holds a function call, and the answer is the response of that function.
 * A request to confirm holds the call that would run, so it is put to approvers as that call.
 */
import type { Message, Part } from '@a2a-js/sdk';
import { isObject, type Json, type JsonObject } from '../../../../src/index.ts';
import { dataPart } from '../../translate.ts';

export interface FunctionCall {
  readonly id: string;
  readonly name: string;
  readonly args: JsonObject;
}

const TYPE = 'adk_type';
const CONFIRM = 'adk_request_confirmation';

/** The call that a message asks for a response to. */
export function functionCallIn(message: Message | undefined): FunctionCall | undefined {
  for (const { content, metadata } of message?.parts ?? []) {
    if (content?.$case !== 'data' || metadata?.[TYPE] !== 'function_call' || !isObject(content.value)) continue;
    const { id, name, args } = content.value;
    if (typeof id === 'string' && typeof name === 'string') return { id, name, args: isObject(args) ? args : {} };
  }
  return undefined;
}

/** The call that would run, and why it is asked about, when this one asks to confirm another. */
export function confirmedCall({ name, args }: FunctionCall): (FunctionCall & { readonly hint?: string }) | undefined {
  const { originalFunctionCall: call, toolConfirmation: about } = args;
  if (name !== CONFIRM || !isObject(call) || typeof call.name !== 'string') return undefined;
  const hint = isObject(about) && typeof about.hint === 'string' && about.hint ? { hint: about.hint } : {};
  return { id: String(call.id ?? ''), name: call.name, args: isObject(call.args) ? call.args : {}, ...hint };
}

export function responsePart({ id, name }: FunctionCall, response: JsonObject): Part {
  return dataPart({ id, name, response } as Json, { [TYPE]: 'function_response' });
}
