/**
 * Questions to people, shown to one editor as the protocol's dialogs. The first answer counts: when it is given elsewhere, the
 * dialog here is withdrawn. An editor that cannot show a question, or whose actor may not answer it, leaves it to other
 * approvers.
 */
import type { PermissionOption, ToolCallContent } from '@agentclientprotocol/sdk';
import {
  type Actor,
  type AskRecord,
  asText,
  type Bridge,
  type CoreEvent,
  type Dialog,
  dialogText,
  Fault,
  type Json,
  type JsonObject,
  type Logger,
  type PendingAct,
  visibleLine,
  visibleText,
} from '../../../src/index.ts';
import { RpcError } from '../../../src/transport/json-rpc/messages.ts';
import type { Peer } from '../../../src/transport/json-rpc/peer.ts';
import { harnUpdate } from '../harn.ts';
import { compact, objectOf, textOf, within } from '../shapes.ts';
import { OURS } from '../translate.ts';
import type { ClientProfile } from './client-profile.ts';
import { kindOf } from './render-tools.ts';

interface QuestionsDeps {
  readonly bridge: Bridge;
  readonly actor: Actor;
  readonly peer: Peer;
  readonly client: ClientProfile;
  readonly sessionId: string;
  readonly log: Logger;
  /** The person canceled the turn; dialogs that this closes are not answers. */
  canceling(): boolean;
  /** The question asks for a value and the client has no forms: it is asked as text, and the next prompt is the answer. */
  askInWords(ask: AskRecord): void;
  sendUpdate(update: JsonObject): void;
}

interface Questions {
  see(event: CoreEvent, replay: boolean): void;
  known(ask: AskRecord): void;
  /** Shows the questions that were found open. */
  raise(): void;
  close(): void;
}

export function createQuestions(deps: QuestionsDeps): Questions {
  const { bridge, actor, peer, client, sessionId, log } = deps;
  const seen = new Map<string, AskRecord>();
  const shown = new Map<string, AbortController>();
  /** Sent in the form of the Harn profile: answered by a separate call, not by a response. */
  const requested = new Set<string>();

  function put(ask: AskRecord): void {
    if (!mayAnswer(actor, ask) || shown.has(ask.id)) return;
    if (ask.kind === 'input' && !client.form) {
      if (!client.harn) {
        deps.askInWords(ask);
        return;
      }
      requested.add(ask.id);
      const { id: requestId, question, schema } = ask;
      const payload = compact({ question, schema: schema ?? undefined });
      deps.sendUpdate(harnUpdate('hitl_request', { requestId, kind: 'question', payload }));
      return;
    }
    const withdrawn = new AbortController();
    shown.set(ask.id, withdrawn);
    const asking = ask.kind === 'input' ? form(ask, withdrawn.signal) : permission(ask, withdrawn.signal);
    asking
      .catch((cause) => {
        if (withdrawn.signal.aborted || peer.over.aborted) return;
        // Answered elsewhere at the same moment, or not shown at all: it stays open for other approvers.
        const everyday = cause instanceof RpcError || (cause instanceof Fault && cause.kind === 'conflict');
        log[everyday ? 'info' : 'warn']({ err: cause, ask: ask.id }, 'a question was not answered here');
      })
      .finally(() => shown.delete(ask.id));
  }

  async function permission(ask: AskRecord, signal: AbortSignal): Promise<void> {
    const act = await bridge.pendingAct({ ...actor, interactive: true }, ask.id).catch(() => undefined);
    const dialog = dialogText(ask, act);
    const params = toWirePermission(sessionId, ask, act, dialog);
    const result = await peer.request('session/request_permission', params, signal);
    const outcome = objectOf(within(result, 'outcome')) ?? {};
    if (outcome.outcome === 'cancelled' && deps.canceling()) return;
    const approved = outcome.outcome === 'selected' && outcome.optionId === APPROVE;
    // An act that was not shown whole cannot be approved here, and dismissing the dialog leaves it to other approvers.
    if (!dialog.whole && (approved || outcome.outcome !== 'selected')) return;
    const reason = textOf(within(result, '_meta', OURS, 'reason'));
    const why = reason ?? (outcome.outcome === 'selected' ? undefined : 'the question was dismissed');
    await answer(ask, { approved, ...(why && { reason: why }) });
  }

  async function form(ask: AskRecord, signal: AbortSignal): Promise<void> {
    const schema = formSchema(ask);
    const result = await peer.request(
      'elicitation/create',
      { mode: 'form', sessionId, message: visibleText(ask.question), requestedSchema: schema },
      signal,
    );
    const action = within(result, 'action');
    if (action === 'accept') {
      const content = objectOf(within(result, 'content')) ?? {};
      return await answer(ask, { value: ask.schema && isForm(ask.schema) ? content : (content.answer ?? null) });
    }
    if (action === 'cancel' && deps.canceling()) return;
    await answer(ask, { approved: false, reason: action === 'decline' ? 'declined' : 'the question was dismissed' });
  }

  async function answer({ id }: AskRecord, body: { approved?: boolean; value?: Json; reason?: string }): Promise<void> {
    // The dialog was shown to the person at this editor.
    await bridge.submit({ kind: 'ask.answer', actor: { ...actor, interactive: true }, body: { ask_id: id, ...body } });
  }

  return {
    see({ event, payload }, replay) {
      if (event === 'vendor.tollbridge.ask_opened') {
        const ask = payload.ask as AskRecord;
        if (replay) seen.set(ask.id, ask);
        else put(ask);
      }
      if (event === 'vendor.tollbridge.ask_closed') {
        const id = asText(payload.ask_id);
        seen.delete(id);
        shown.get(id)?.abort();
        if (requested.delete(id)) {
          const outcome = asText(payload.state);
          deps.sendUpdate(harnUpdate('hitl_resolved', { requestId: id, kind: 'question', outcome }));
        }
      }
    },
    known: (ask) => {
      seen.set(ask.id, ask);
    },
    raise() {
      for (const ask of seen.values()) put(ask);
      seen.clear();
    },
    close() {
      for (const dialog of shown.values()) dialog.abort();
    },
  };
}

export const APPROVE = 'approve';
const REJECT = 'reject';

/**
 * Exactly two options, neither of which lasts; no allow option where the act is not shown whole. The title is ours, as is the
 * text below it.
 */
export function toWirePermission(
  sessionId: string,
  ask: AskRecord,
  act: PendingAct | undefined,
  { headline, text, whole }: Dialog,
): JsonObject {
  const action = (act ?? ask.action) as JsonObject;
  return {
    sessionId,
    toolCall: compact({
      toolCallId: ask.tool_call_id ?? ask.id,
      title: headline,
      name: textOf(action.tool) ?? textOf(action.kind),
      kind: kindOf(action),
      status: 'pending',
      rawInput: action.arguments,
      content: [{ type: 'content', content: { type: 'text', text } }, ...toWireDiffs(act)],
    }),
    options: [
      ...(whole ? [{ optionId: APPROVE, name: 'Allow once', kind: 'allow_once' } as const] : []),
      { optionId: REJECT, name: 'Reject', kind: 'reject_once' },
    ] satisfies PermissionOption[],
    _meta: { [OURS]: { askId: ask.id, expiresAt: ask.expires_at } },
  };
}

/** Editors show diffs side by side; the text above has them as lines. */
export function toWireDiffs(act: PendingAct | undefined): JsonObject[] {
  return (act?.changes ?? []).map(
    ({ path, before, after }) =>
      ({ type: 'diff', path, oldText: before ?? null, newText: after }) satisfies ToolCallContent,
  );
}

const SIMPLE = new Set(['string', 'number', 'integer', 'boolean']);

/** Forms are flat: a nested schema is asked for as a single text. */
function isForm(schema: JsonObject): boolean {
  const properties = Object.values(objectOf(schema.properties) ?? {});
  return (
    schema.type === 'object' &&
    properties.length > 0 &&
    properties.every((property) => SIMPLE.has(asText(within(property, 'type'))))
  );
}

function formSchema({ schema, question }: AskRecord): JsonObject {
  if (schema && isForm(schema as JsonObject)) return schema as JsonObject;
  const { type, description } = (schema ?? {}) as JsonObject;
  const answer = compact({
    type: SIMPLE.has(asText(type)) ? type : 'string',
    title: visibleLine(question),
    description: textOf(description),
  });
  return { type: 'object', properties: { answer }, required: ['answer'] };
}

/**
 * Predicts the bridge's decision: a dialog whose answer would be refused is not shown. A credential that does not belong to a
 * person has mostly started the work itself, and approves nothing in it unless it was created for that.
 */
export function mayAnswer(actor: Actor, { to, kind: wanted }: AskRecord): boolean {
  const { kind, scopes, id } = actor;
  const allowed = scopes.includes('*') || scopes.includes('approvals:write') || scopes.includes('approvals:*');
  if (kind === 'agent' || !allowed) return false;
  if (wanted === 'approval' && kind !== 'person' && !scopes.includes('approvals:own') && !to.includes(id)) return false;
  return to.length === 0 || to.includes(id) || to.some((word) => scopes.includes(word));
}
