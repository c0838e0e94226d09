/** Questions: the record people see, and the run's short list of open ones. */
import type { AskRecord } from '../../../model/asks.ts';
import type { CoreEvent } from '../../../model/events.ts';
import type { Change } from '../../../ports/index.ts';
import { changeRun, type Get, NO_CHANGE, put, text } from './changes.ts';

export function askOpened(event: CoreEvent<'vendor.tollbridge.ask_opened'>, get: Get): readonly Change[] {
  const { ask } = event.payload;
  const waiting = { id: ask.id, kind: ask.kind, key: askKey(ask), digest: ask.digest, state: ask.state };
  return [
    put({ ...ask, created_at: event.created_at, updated_at: event.created_at }),
    ...changeRun(event, get, (run) => ({ ...run, asks: [...run.asks, waiting] })),
  ];
}

export function askClosed(event: CoreEvent<'vendor.tollbridge.ask_closed'>, get: Get): readonly Change[] {
  const closed = event.payload;
  const ask = get<AskRecord>('ask', closed.ask_id);
  if (!ask) return NO_CHANGE;
  return [
    put({
      ...ask,
      state: closed.state,
      answered_by: closed.by,
      answered_at: closed.at,
      answer: closed.answer ?? null,
      reason: closed.reason ?? ask.reason,
      updated_at: event.created_at,
    }),
    ...changeRun(event, get, (run) => ({
      ...run,
      asks: run.asks.map((a) => (a.id === closed.ask_id ? { ...a, state: closed.state } : a)),
    })),
  ];
}

export function askUsed(event: CoreEvent<'vendor.tollbridge.ask_used'>, get: Get): readonly Change[] {
  const id = event.payload.ask_id;
  const ask = get<AskRecord>('ask', id);
  return [
    ...(ask ? [put({ ...ask, used_at: event.created_at, updated_at: event.created_at })] : []),
    ...changeRun(event, get, (run) => ({ ...run, asks: run.asks.filter((a) => a.id !== id) })),
  ];
}

/** Asking again with the same key is the same question. */
export function askKey(ask: Pick<AskRecord, 'tool_call_id' | 'metadata'>): string {
  return ask.tool_call_id ?? text(ask.metadata.key) ?? '';
}
