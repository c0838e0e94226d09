/**
 * A question as the editor shows it: the agent's own request with our headline, the whole act and our labels on its buttons.
 * The agent's text stands below, marked as the agent's. All other bytes of the request are unchanged.
 */
import { STANDING_GRANT } from '../../../../mappings/acp.ts';
import {
  type Dialog,
  type Json,
  type JsonObject,
  type PendingAct,
  visibleLine,
  visibleText,
} from '../../../../src/index.ts';
import { toWireDiffs } from '../../server/questions.ts';
import { listOf, objectOf, textOf, within } from '../../shapes.ts';
import { paramsOf, type Request } from '../frames/frame.ts';
import { withMember } from '../frames/members.ts';

export interface Showing {
  readonly dialog: Dialog;
  readonly act: PendingAct | undefined;
}

/** The agent's own question about a call. It has no allow option where the act is not shown whole. */
export function permissionLine(request: Request, line: Buffer, { dialog, act }: Showing): Buffer {
  const params = paramsOf(request);
  const options = listOf(within(JSON.parse(line.toString('utf8')) as Json, 'params', 'options'));
  const choices = options.flatMap((option) => ownOption(option, dialog.whole));
  const named = withMember(line, ['params', 'options'], choices);
  const sessionKey = objectOf(params.toolCall) ? ['params', 'toolCall'] : ['params', 'subject', 'toolCall'];
  const call = objectOf(params.toolCall) ?? objectOf(within(params, 'subject', 'toolCall'));
  // A question without a call can show the text only in its title.
  if (!call) return withMember(named, ['params', 'title'], dialog.text);
  const own = listOf(call.content).some((item) => within(item, 'type') === 'diff') ? [] : toWireDiffs(act);
  const content = [textBlock(dialog.text), ...own, ...listOf(call.content).flatMap(agentsBlock)];
  return withMember(named, sessionKey, {
    ...call,
    title: dialog.headline,
    content: dialog.whole ? content : content.slice(0, 1),
  });
}

/** A question of ours about an act that passes through us. Its title is ours too, and may contain the agent's names. */
export function ownCall(toolCall: JsonObject, { dialog, act }: Showing): JsonObject {
  const content = [textBlock(dialog.text), ...(dialog.whole ? toWireDiffs(act) : [])];
  const rawInput = dialog.whole && act ? { rawInput: act.arguments } : {};
  const title = visibleLine(textOf(toolCall.title) ?? dialog.headline);
  return { ...toolCall, title, ...rawInput, content };
}

/** A form belongs to the agent, and the editor says so; only invisible characters in it are written out. */
export function formLine(request: Request, line: Buffer): Buffer {
  const message = textOf(paramsOf(request).message);
  const shown = message && visibleText(message);
  return shown === undefined || shown === message ? line : withMember(line, ['params', 'message'], shown);
}

const WORDS: Readonly<Record<string, string>> = {
  allow_once: 'Allow once',
  [STANDING_GRANT]: 'Allow from now on',
  reject_once: 'Reject',
  reject_always: 'Reject from now on',
};

/** A button's label begins with what it does; the agent's label follows. */
function ownOption(option: Json, whole: boolean): readonly JsonObject[] {
  const { kind, name, ...rest } = objectOf(option) ?? {};
  const yes = typeof kind !== 'string' || !kind.startsWith('reject_');
  if (yes && !whole) return [];
  const does = (typeof kind === 'string' && Object.hasOwn(WORDS, kind) && WORDS[kind]) || 'Unknown to the gateway';
  const said = typeof name === 'string' ? visibleLine(name) : '';
  const shown = said === '' || said.toLowerCase() === does.toLowerCase() ? does : `${does} (agent: ${said})`;
  return [{ ...rest, ...(kind !== undefined && { kind }), name: shown }];
}

function agentsBlock(item: Json): readonly Json[] {
  const text = textOf(within(item, 'content', 'text'));
  return text === undefined ? [item] : [textBlock(`The agent says:\n${visibleText(text)}`)];
}

function textBlock(text: string): JsonObject {
  return { type: 'content', content: { type: 'text', text } };
}
