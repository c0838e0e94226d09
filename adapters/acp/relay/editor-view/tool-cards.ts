/**
 * The cards an editor shows for calls. A call that was refused elsewhere than in this editor is closed at once, with the rule and
 * the reason, and again at the end of the turn where its agent has put its own words over them. Some agents never mention a
 * denied call again: its card is closed at the end of the turn.
 */

import { toolStatus } from '../../../../mappings/acp.ts';
import type { JsonObject } from '../../../../src/index.ts';
import { asText } from '../../../../src/index.ts';
import { compact, textOf } from '../../shapes.ts';
import { encode } from '../frames/frame.ts';

export interface Cards {
  reported(update: JsonObject): void;
  /** The editor was asked about the call, and so shows a card. */
  shown(toolCallId: string): void;
  /** `here`: the person at this editor refused it, and needs no reason. Otherwise the frame that shows the reason now. */
  refused(toolCall: JsonObject, reason: string, here: { sessionId: string } | 'here'): Buffer | undefined;
  /** Frames that close denied calls the agent never closed, or closed in words of its own. */
  closing(sessionId: string): readonly Buffer[];
}

interface Refused {
  readonly call: JsonObject;
  readonly reason: string;
  readonly here: boolean;
  /** The editor shows the reason. */
  shown: boolean;
}

export function createCards(): Cards {
  const known = new Set<string>();
  const ended = new Set<string>();
  const refused = new Map<string, Refused>();

  function closed(sessionId: string, toolCallId: string, { call, reason }: Refused): Buffer {
    const card = {
      toolCallId,
      status: 'failed',
      content: [{ type: 'content', content: { type: 'text', text: reason } }],
    };
    const update = known.has(toolCallId)
      ? { sessionUpdate: 'tool_call_update', ...card }
      : { sessionUpdate: 'tool_call', ...card, ...compact({ title: call.title ?? 'refused', kind: call.kind }) };
    known.add(toolCallId);
    return encode({ jsonrpc: '2.0', method: 'session/update', params: { sessionId, update } });
  }

  return {
    reported({ toolCallId, status }) {
      const id = textOf(toolCallId);
      if (!id) return;
      known.add(id);
      const no = refused.get(id);
      if (no) no.shown = false;
      const state = toolStatus.toCore(asText(status ?? ''));
      if (state === 'ok' || state === 'error') ended.add(id);
      else if (state) ended.delete(id);
    },
    shown: (id) => {
      known.add(id);
    },
    refused(call, reason, where) {
      const id = textOf(call.toolCallId);
      if (!id) return undefined;
      ended.delete(id);
      const no: Refused = { call, reason, here: where === 'here', shown: where !== 'here' };
      refused.set(id, no);
      return where === 'here' ? undefined : closed(where.sessionId, id, no);
    },
    closing(sessionId) {
      const open = [...refused].filter(([id, { here, shown }]) => (here ? !ended.has(id) : !shown));
      refused.clear();
      return open.map(([id, no]) => closed(sessionId, id, no));
    },
  };
}
