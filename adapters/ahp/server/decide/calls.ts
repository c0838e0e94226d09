/** A call and a prompt: the two events an agent asks about before it acts. The decision is kept until the agent reports the outcome. */
import type { Deps, Json, JsonObject } from '../../../../src/index.ts';
import { type AhpSettings, honouredBy } from '../../config.ts';
import {
  type AhpEvent,
  asHonoured,
  besideArguments,
  fingerprint,
  promptOf,
  readCall,
  rewriteCall,
  rewritePrompt,
  toCoreAction,
  toWireGeneric,
} from '../../translate.ts';
import { openingOf, says } from '../event-members.ts';
import { notSeen } from '../open-calls.ts';
import type { Runs, SupervisedRun } from '../supervised-tasks.ts';
import { type Asker, type GateQuestions, toAction } from './ask-gate.ts';

export interface CallsDeps {
  readonly gate: GateQuestions;
  readonly runs: Runs;
  readonly settings: AhpSettings;
  readonly deps: Pick<Deps, 'log' | 'clock'>;
}

interface Calls {
  preAction(event: AhpEvent, asker: Asker): Promise<JsonObject>;
  prePrompt(event: AhpEvent, asker: Asker): Promise<JsonObject>;
  /** The answer came after the agent had got a refusal. */
  tooLate(event: AhpEvent, asker: Asker, said: JsonObject): Promise<void>;
}

export function createCalls({ gate, runs, settings, deps }: CallsDeps): Calls {
  async function preAction(event: AhpEvent, asker: Asker): Promise<JsonObject> {
    const call = readCall(event.payload);
    const print = fingerprint(call.tool, call.arguments);
    const action = toCoreAction(event, call, settings.effects);
    const honoured = honouredBy(settings, asker.framework);
    const beside = besideArguments(event.payload, call);
    // It is unknown which of the two a rewrite would have to change.
    const takesArguments = honoured.has('modify') && !beside;
    const asked = beside ? fingerprint(call.tool, call.arguments, beside) : print;
    const { run, gateDecision, call_id } = await gate.askGate(event, asker, {
      action,
      takesArguments,
      fingerprint: asked,
    });
    const said = toWireGeneric(asHonoured(gateDecision, honoured), rewriteCall(event.payload, call));
    if (!call_id) return said;
    const now = Date.parse(deps.clock.now());
    const known = { id: call_id, tool: call.tool };
    if (said.decision !== 'allow' && said.decision !== 'modify') {
      run.refused.add(print, known, now);
      run.refused.giveUp(now);
      if (gateDecision.verdict === 'modify') await calledOff(run, call_id, call.tool);
      return said;
    }
    run.open.add(gateDecision.arguments ? fingerprint(call.tool, gateDecision.arguments) : print, known, now);
    giveUp(run, now);
    return said;
  }

  /** Not awaited: calls that cannot be recorded now are closed with the task. */
  function giveUp(run: SupervisedRun, now: number): void {
    const unseen = run.open.giveUp(now);
    if (unseen.length === 0) return;
    run.unseen += unseen.length;
    runs
      .inOrder(run.actor, run, () => gate.report(run, unseen.map(notSeen)))
      .catch((cause) => deps.log.warn({ err: cause, task: run.taskId }, 'calls without an outcome stay open'));
  }

  /** Allowed in the log but refused on the wire: the log must record what really happened. */
  async function calledOff(run: SupervisedRun, callId: string | undefined, tool: string): Promise<void> {
    if (!callId) return;
    run.open.drop(callId);
    const payload = {
      tool_call_id: callId,
      name: tool,
      status: 'error',
      error: 'the agent got a refusal',
      code: 'called_off',
    };
    await gate.report(run, [{ event: 'tool.failed', payload }]);
  }

  async function prePrompt(event: AhpEvent, asker: Asker): Promise<JsonObject> {
    const prompt = promptOf(event.payload);
    const input = prompt ? { prompt: prompt.text } : ((event.payload ?? {}) as JsonObject);
    const args = typeof input === 'object' && !Array.isArray(input) ? input : { prompt: input };
    const action = { ...toAction(event, args), tool: 'prompt' };
    const honoured = honouredBy(settings, asker.framework);
    const { run, gateDecision: decided } = await gate.askGate(event, asker, {
      action,
      takesArguments: honoured.has('modify'),
    });
    const gateDecision = asHonoured(decided, honoured);
    if (gateDecision.verdict === 'allow' || gateDecision.verdict === 'modify') {
      const text = (gateDecision.arguments?.prompt ?? prompt?.text) as Json | undefined;
      run.prompts += 1;
      run.spans += 1;
      const span = { id: `${run.taskId}.span${run.spans}`, kind: 'llm', call_id: `${run.taskId}.llm${run.spans}` };
      await gate.report(run, [
        ...(run.prompts === 1 && typeof text === 'string'
          ? [{ event: 'user.message' as const, payload: says('user', text) }]
          : []),
        { event: 'span.started', payload: { span } },
      ]);
    }
    return toWireGeneric(gateDecision, rewritePrompt(event.payload));
  }

  /** The agent received a no; if the log now has a yes, it must not look as if the act may have run. */
  async function tooLate(event: AhpEvent, { actor }: Asker, said: JsonObject): Promise<void> {
    deps.log.warn({ event: event.event_type, decision: said.decision }, 'a decision came too late and was not sent');
    if (event.event_type !== 'pre_action') return;
    const call = readCall(event.payload);
    const run = await runs.open(actor, event, openingOf(event, undefined));
    const waiting = run.open.latest(fingerprint(call.tool, call.arguments));
    if (waiting && (said.decision === 'allow' || said.decision === 'modify'))
      await calledOff(run, waiting.id, call.tool);
  }

  return { preAction, prePrompt, tooLate };
}
