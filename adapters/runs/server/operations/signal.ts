/**
 * Signals: approve, reject or provide a value, for the same questions that every other door shows. Runs have no ids for questions,
 * so a signal answers the oldest one it can. A rejection here fails the run, as its callers expect.
 */
import { SIGNAL_ACTIONS, type SignalAction } from '../../../../mappings/runs.ts';
import { type Actor, isObject, type Json, type JsonObject, type Row } from '../../../../src/index.ts';
import type { Call, Reply, RouteContext } from '../call.ts';
import { RunsRefusal, refusalOf, refusing } from '../refusal.ts';
import type { RunQuestion } from '../render/questions.ts';
import { REJECTED } from '../run-metadata.ts';
import type { OpenRun } from '../run-reader.ts';

interface Signal {
  readonly action: SignalAction;
  readonly payload: Json | undefined;
  readonly key: string | undefined;
}

/** A question that does not exist is the caller's mistake; a failure to answer it is ours. */
const CLOSER = {
  not_found: 'RUN_NOT_FOUND',
  conflict: 'RUN_NOT_AWAITING_INPUT',
  invalid_state_transition: 'RUN_NOT_AWAITING_INPUT',
  invalid_request: 'SIGNAL_PAYLOAD_INVALID',
  payload_too_large: 'SIGNAL_PAYLOAD_INVALID',
  policy_violation: 'POLICY_DENIED',
  internal: 'SIGNAL_SERVICE_UNAVAILABLE',
  unavailable: 'SIGNAL_SERVICE_UNAVAILABLE',
  upstream_unavailable: 'SIGNAL_SERVICE_UNAVAILABLE',
  deadline_exceeded: 'SIGNAL_SERVICE_UNAVAILABLE',
} as const;

export function signalRun(context: RouteContext): (call: Call) => Promise<Reply> {
  const { bridge, runReader, turns, cleaner } = context;

  /** The question this key was used for, if it was used: for this very signal, or for another one. */
  async function earlier(runId: string, names: Names): Promise<string | undefined> {
    const same = await bridge.bound('runs', names.scope, names.signal);
    if (same) return same.id;
    if (await bridge.bound('runs', names.scope, names.key)) throw new RunsRefusal('IDEMPOTENCY_KEY_REUSED', runId);
    return undefined;
  }

  /** Recorded before the question is answered: a repeated signal must find it, also after a crash in between. */
  async function claim(actor: Actor, { scope, signal, key }: Names, askId: string): Promise<void> {
    for (const wire_id of [signal, key]) {
      const body = { protocol: 'runs', scope, wire_id, to: { object: 'ask', id: askId } };
      await bridge.submit({ kind: 'binding.set', actor, body });
    }
  }

  async function answer(actor: Actor, askId: string, { action, payload }: Signal): Promise<void> {
    const reason = reasonIn(payload);
    const body =
      action === 'submit_input'
        ? { value: cleaner.clean({ value: payload as Json }, []).value.value as Json }
        : action === 'approve'
          ? { approved: true, ...changedIn(payload), ...(reason && { reason }) }
          : { approved: false, ...(reason && { reason }), failure: { code: REJECTED, message: reason ?? 'rejected' } };
    await bridge.submit({ kind: 'ask.answer', actor, body: { ask_id: askId, ...body } });
  }

  async function apply({ actor, id }: Call, run: OpenRun, signal: Signal): Promise<void> {
    const names = signal.key === undefined ? undefined : namesOf(context, id, signal);
    const before = names && (await earlier(id, names));
    if (before) {
      // The first signal may have been interrupted after its claim.
      const { state } = await bridge.view<Row & { state: string }>(actor, 'ask', before);
      if (state === 'open') await answer(actor, before, signal);
      return;
    }
    const question = questionFor(run, signal.action);
    if (!question) throw new RunsRefusal('RUN_NOT_AWAITING_INPUT');
    // An act that a run cannot show whole is approved at a door that can.
    if (signal.action === 'approve' && !question.whole) throw new RunsRefusal('POLICY_DENIED', question.ask_id);
    if (names) await claim(actor, names, question.ask_id);
    await answer(actor, question.ask_id, signal);
  }

  return async (call) => {
    const body = await refusing(CLOSER, () => call.body());
    // A missing run is reported before errors in the signal.
    await runReader.open(call.actor, call.id);
    const signal = readSignal(body);
    try {
      await turns.take(`signal ${call.id}`, async () => apply(call, await runReader.open(call.actor, call.id), signal));
    } catch (thrown) {
      throw refusalOf(thrown, CLOSER);
    }
    return { body: { ok: true } };
  };
}

interface Names {
  readonly scope: string;
  readonly key: string;
  readonly signal: string;
}

function namesOf(context: RouteContext, runId: string, { action, payload, key }: Signal): Names {
  const name = context.digest(['signal', runId, key ?? null]).slice(-32);
  const what = context.digest([action, payload ?? null]).slice(-32);
  return { scope: `signals/${runId}`, key: name, signal: `${name}.${what}` };
}

function questionFor({ standing }: OpenRun, action: SignalAction): RunQuestion | undefined {
  if (action === 'reject') return standing.questions[0];
  const kind = action === 'approve' ? 'approval' : 'input';
  return standing.questions.find((question) => question.kind === kind);
}

export function readSignal(body: unknown): Signal {
  if (!isObject(body as Json)) throw new RunsRefusal('SIGNAL_PAYLOAD_INVALID');
  const { action, payload, idempotency_key: key } = body as JsonObject;
  const known = SIGNAL_ACTIONS.find((word) => word === action);
  if (!known) throw new RunsRefusal('SIGNAL_PAYLOAD_INVALID');
  const named = key === undefined || key === null || (typeof key === 'string' && key !== '' && key.length <= 255);
  if (!named) throw new RunsRefusal('SIGNAL_PAYLOAD_INVALID');
  if (known === 'submit_input' && payload === undefined) throw new RunsRefusal('SIGNAL_PAYLOAD_INVALID');
  return { action: known, payload, key: typeof key === 'string' ? key : undefined };
}

/** `payload.arguments` of an approval: the arguments to run instead of the requested ones. */
function changedIn(payload: Json | undefined): { arguments?: JsonObject } {
  const args = isObject(payload) ? payload.arguments : undefined;
  if (args === undefined || args === null) return {};
  if (!isObject(args)) throw new RunsRefusal('SIGNAL_PAYLOAD_INVALID');
  return { arguments: args };
}

/** The approver's reason: the payload is a text, or contains one. */
function reasonIn(payload: Json | undefined): string | undefined {
  const text = isObject(payload) ? (payload.reason ?? payload.comment) : payload;
  return typeof text === 'string' && text !== '' ? text : undefined;
}
