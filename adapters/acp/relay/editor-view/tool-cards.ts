/**
 * The cards an editor shows for calls. Some agents never mention a denied call again, and its card would stay open for ever; at
 * the end of a turn the relay closes it, with the reason. Cards the agent has closed are left alone.
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
  refused(toolCall: JsonObject, reason: string): void;
  /** Frames that close denied calls the agent never closed. */
  closing(sessionId: string): readonly Buffer[];
}

export function createCards(): Cards {
  const known = new Set<string>();
  const ended = new Set<string>();
  const refused = new Map<string, { readonly call: JsonObject; readonly reason: string }>();
  return {
    reported({ toolCallId, status }) {
      const id = textOf(toolCallId);
      if (!id) return;
      known.add(id);
      const state = toolStatus.toCore(asText(status ?? ''));
      if (state === 'ok' || state === 'error') ended.add(id);
      else if (state) ended.delete(id);
    },
    shown: (id) => {
      known.add(id);
    },
    refused(call, reason) {
      const id = textOf(call.toolCallId);
      if (!id) return;
      ended.delete(id);
      refused.set(id, { call, reason });
    },
    closing(sessionId) {
      const frames = [...refused].flatMap(([toolCallId, { call, reason }]) => {
        if (ended.has(toolCallId)) return [];
        const card = {
          toolCallId,
          status: 'failed',
          content: [{ type: 'content', content: { type: 'text', text: reason } }],
        };
        const update = known.has(toolCallId)
          ? { sessionUpdate: 'tool_call_update', ...card }
          : { sessionUpdate: 'tool_call', ...card, ...compact({ title: call.title ?? 'refused', kind: call.kind }) };
        return [encode({ jsonrpc: '2.0', method: 'session/update', params: { sessionId, update } })];
      });
      refused.clear();
      return frames;
    },
  };
}
