/** Validation of requests before they have any effect. The SDK's codecs never reject anything; this does. */
import { type ListTasksRequest, type Message, Role, type SendMessageRequest, TaskState } from '@a2a-js/sdk';
import { Refusal } from './refusal.ts';

const malformed = (what: string) => new Refusal('INVALID_PARAMS', what);

export function checkSend({ message, configuration }: SendMessageRequest, inputModes?: readonly string[]): Message {
  if (!message) throw malformed('message is required');
  if (!message.messageId) throw malformed('message.messageId is required');
  if (message.role !== Role.ROLE_USER) throw malformed('message.role has to be ROLE_USER');
  if (message.parts.length === 0) throw malformed('message.parts needs at least one part');
  for (const { content, mediaType } of message.parts) {
    if (!content) throw malformed('a part has to hold text, raw, url or data');
    if (inputModes && mediaType && !inputModes.some((mode) => matches(mode, mediaType))) {
      throw new Refusal('CONTENT_TYPE_NOT_SUPPORTED', `parts of type ${shown(mediaType)} are not taken here`);
    }
  }
  checkHistoryLength(configuration?.historyLength);
  return message;
}

export function checkHistoryLength(length: number | undefined): void {
  if (length !== undefined && (!Number.isInteger(length) || length < 0)) {
    throw malformed('historyLength has to be a whole number, 0 or more');
  }
}

export function checkId(id: string, name = 'id'): string {
  if (!id) throw malformed(`${name} is required`);
  if (id.length > 512) throw malformed(`${name} is too long`);
  return id;
}

export function checkList({ pageSize, status, historyLength, statusTimestampAfter }: ListTasksRequest): void {
  if (pageSize !== undefined && (!Number.isInteger(pageSize) || pageSize < 1 || pageSize > 100)) {
    throw malformed('pageSize has to be between 1 and 100');
  }
  if (status === TaskState.UNRECOGNIZED) throw malformed('status is not a state of a task');
  checkHistoryLength(historyLength);
  if (statusTimestampAfter && Number.isNaN(Date.parse(statusTimestampAfter))) {
    throw malformed('statusTimestampAfter has to be a time');
  }
}

/** `image/*` matches every image. */
function matches(mode: string, mediaType: string): boolean {
  const [bare = ''] = mediaType.toLowerCase().split(';', 1);
  const wanted = mode.toLowerCase();
  return wanted === '*/*' || wanted === bare.trim() || (wanted.endsWith('/*') && bare.startsWith(wanted.slice(0, -1)));
}

function shown(text: string): string {
  return JSON.stringify(text.slice(0, 100));
}
