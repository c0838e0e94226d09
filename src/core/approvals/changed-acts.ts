/**
 * An approver's own arguments: "yes, but with these". They are checked against the tool's schema, decided by the rules like any
 * act, and stored unredacted until the asker runs exactly them. The log has them redacted, with their keyed digest and both hashes.
 * An answer that cannot be carried out is refused, and the question stays open: the act asked about has not been denied.
 */

import type { Action, ActionKind, Actor, Decision } from '../../model/actions.ts';
import {
  type Again,
  type AskRecord,
  type Changeable,
  type ChangedArguments,
  isChanged,
  type PendingAct,
} from '../../model/asks.ts';
import type { EventDraft } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import type { Skill, Task } from '../../model/resources.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import { own } from '../../model/values/own.ts';
import type { ActReader, Clock, Ids, Row, Store } from '../../ports/index.ts';
import { effectOf } from '../actions/effect-floor.ts';
import type { Gate } from '../actions/gate.ts';
import type { ReadPolicyData } from '../actions/policy-data.ts';
import type { Taints } from '../actions/taints.ts';
import { artifactEvents, type Log } from '../events/log.ts';
import { inTask, taskLocation } from '../tasks/lifecycle.ts';
import { argumentsTrouble } from '../tools/arguments.ts';
import { whyNoAnswer } from './may-answer.ts';
import type { WholeActs } from './whole-acts.ts';

export interface ChangedActsDeps {
  readonly store: Pick<Store, 'get'>;
  readonly log: Pick<Log, 'fit' | 'clean' | 'commit'>;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly gate: Gate;
  readonly policyData: ReadPolicyData;
  readonly read: ActReader;
  readonly taints: Pick<Taints, 'of'>;
  readonly hash: (value: Json) => string;
  readonly digest: (args: JsonObject) => string;
  readonly canonical: (value: Json) => string;
  readonly wholeActs: Pick<WholeActs, 'kept' | 'keepChanged' | 'dropChanged'>;
}

/** The events of an approval with other arguments, and the cleanup when their commit fails. */
interface Change {
  readonly answer: ChangedArguments;
  readonly events: readonly EventDraft[];
  undo(): void;
}

export interface ChangedActs {
  /** Undefined: the arguments equal those asked about, so the approval is an ordinary one. Throws when they cannot be run. */
  prepare(actor: Actor, ask: AskRecord, args: JsonObject): Promise<Change | undefined>;
}

export function createChangedActs(deps: ChangedActsDeps): ChangedActs {
  const { store, log, clock, gate, digest, canonical, wholeActs } = deps;

  async function decide(task: Task, act: PendingAct, again: Changeable, args: JsonObject): Promise<Decision> {
    const { root, ...data } = await deps.policyData(task);
    const marked = deps.taints.of(task.session_id);
    const tainted = typeof marked === 'boolean' ? marked : await marked;
    const target = targetAfter(act, args);
    const { attributes, mounted, effect } = again;
    const bare: Action = {
      id: deps.ids.next('action'),
      kind: act.kind,
      actor: again.actor,
      ...taskLocation(task),
      ...(again.tool_call_id && { tool_call_id: again.tool_call_id }),
      ...(act.tool && { tool: act.tool }),
      ...(act.server && { server: act.server }),
      ...(again.definition && { definition: again.definition }),
      ...(target && { target }),
      ...(act.cwd && { cwd: act.cwd }),
      ...(act.claims && { claims: act.claims }),
      ...((attributes || tainted) && { attributes: { ...attributes, ...(tainted && { tainted }) } }),
      ...(again.cost && { cost: again.cost }),
      effect,
      evidence: act.evidence,
      arguments: args,
      ...(root && { root }),
      ...data,
    };
    return await gate(mounted ? bare : withFacts(bare, deps.read));
  }

  /** Records the arguments an approver tried to allow, and why they were refused, like any refused answer. */
  async function refuse(actor: Actor, task: Task, ask: AskRecord, args: JsonObject, no: Refused): Promise<never> {
    const payload = {
      ask_id: ask.id,
      by: actor.id,
      code: no.code,
      reason: no.reason,
      ...(no.rule_id && { rule_id: no.rule_id }),
      arguments_hash: deps.hash(log.clean(args)),
    };
    const event: EventDraft = {
      event: 'vendor.tollbridge.answer_refused',
      actor: actor.id,
      payload,
      ...inTask(task),
    };
    await log.commit({
      reads: [{ object: 'ask', id: ask.id }],
      decide: (at) => ({ events: at.get<AskRecord & Row>('ask', ask.id)?.state === 'open' ? [event] : [] }),
    });
    const details = { ask_id: ask.id, code: no.code, rule_id: no.rule_id ?? null };
    throw new Fault(no.kind, `these arguments may not run: ${no.reason}; the question stays open`, { details });
  }

  return {
    async prepare(actor, ask, args) {
      if (ask.kind !== 'approval') {
        throw unchangeable(ask, 'it wants a value, not an approval');
      }
      const task = await store.get<Task & Row>('task', ask.task_id);
      if (!task) throw new Fault('not_found', `no task ${ask.task_id}`);
      const act = await wholeActs.kept(ask.id);
      const spelled = canonicalOf(args, canonical);
      if (spelled === canonical(act.arguments)) return undefined;
      const { again } = act;
      if (!again || 'fixed' in again) throw unchangeable(ask, again?.fixed ?? 'the act is not kept for that');
      const unfit = unfitting(act, again, args);
      if (unfit) throw new Fault('invalid_request', `the arguments cannot run: ${unfit}`, { param: '/arguments' });

      const decision = await decide(task, act, again, args);
      const no = objection(decision, digest(args), () => {
        const to = [...(decision.ask?.to ?? [])];
        return to.length > 0 ? whyNoAnswer(actor, { ...ask, to }, task, false)?.message : undefined;
      });
      if (no) return await refuse(actor, task, ask, args, no);

      const shown = await log.fit(args, { now: clock.now(), ...taskLocation(task) });
      const answer: ChangedArguments = {
        arguments: shown.value as JsonObject,
        arguments_digest: digest(args),
        arguments_hash: deps.hash(log.clean(shown.value)),
        asked_hash: deps.hash(log.clean(ask.action.arguments ?? {})),
        ...(decision.rule_id && { rule_id: decision.rule_id }),
        to: [...(decision.ask?.to ?? [])],
      };
      const { changes: _, again: __, ...rest } = act;
      await wholeActs.keepChanged(ask.id, answer.arguments_digest, { ...rest, arguments: args });
      return {
        answer,
        events: artifactEvents(shown.artifacts, inTask(task)),
        undo() {
          // Another approver may have sent the same arguments first: those are still needed.
          void store.get<AskRecord & Row>('ask', ask.id).then((now) => {
            const theirs = now && isChanged(now.answer) ? now.answer.arguments_digest : undefined;
            if (theirs !== answer.arguments_digest) wholeActs.dropChanged(ask.id, answer.arguments_digest);
          }, IGNORED);
        },
      };
    },
  };
}
const IGNORED = () => undefined;

interface Refused {
  readonly kind: 'policy_violation' | 'permission_denied' | 'rate_limited';
  readonly code: string;
  readonly reason: string;
  readonly rule_id?: string;
}

/** Why the rules do not let these arguments run on this approver's approval. */
function objection(decision: Decision, digest: string, othersOnly: () => string | undefined): Refused | undefined {
  const about = { ...(decision.rule_id && { rule_id: decision.rule_id }) };
  const { verdict, reason, code } = decision;
  if (verdict === 'block') return { kind: 'policy_violation', code: code ?? 'blocked', reason, ...about };
  if (verdict === 'defer') return { kind: 'rate_limited', code: code ?? 'deferred', reason, ...about };
  if (decision.arguments_digest !== digest) {
    const why = `${reason} (a rule rewrites them; what runs would not be what was approved)`;
    return { kind: 'policy_violation', code: 'rewritten', reason: why, ...about };
  }
  if (verdict !== 'escalate') return undefined;
  const others = othersOnly();
  return others ? { kind: 'permission_denied', code: 'other_approvers', reason: others, ...about } : undefined;
}

/** Why the rules refuse a changed act at the moment it would run; undefined when the approval covers it. */
export function voidedBy(now: Decision, changed: ChangedArguments): string | undefined {
  const no = objection(now, changed.arguments_digest, () => {
    const same = JSON.stringify(now.ask?.to ?? []) === JSON.stringify(changed.to);
    return same ? undefined : 'the rules name other approvers by now; ask again';
  });
  return no?.reason;
}

/** The act with the approver's arguments: its facts and effect are read from these. */
export function withChanged(action: Action, args: JsonObject, mounted: boolean, read: ActReader | undefined): Action {
  const { changes: _, facts: __, target: ___, ...rest } = action;
  const target = targetAfter(action, args);
  const changed: Action = { ...rest, ...(target && { target }), arguments: args };
  return mounted || !read ? changed : withFacts(changed, read);
}

function withFacts(action: Action, read: ActReader): Action {
  const facts = read(action);
  return { ...action, facts, effect: effectOf(action, facts.shows) };
}

/** The data needed to decide on an act again, or why it cannot run with other arguments. */
export function againOf(action: Action, takesArguments: boolean, skill: Skill | undefined): Again {
  const { kind, evidence, actor, definition, tool_call_id, attributes, cost, effect } = action;
  if (!takesArguments) return { fixed: 'the agent that asked can only hear yes or no' };
  if (evidence === 'held' && !RUNS_AS_CHANGED.has(kind))
    return { fixed: `an act of kind ${kind} runs as it was asked for` };
  const schema = skill?.input_schema as JsonObject | null | undefined;
  return {
    actor,
    effect,
    mounted: skill !== undefined,
    ...(definition && { definition }),
    ...(tool_call_id && { tool_call_id }),
    ...(attributes && { attributes }),
    ...(cost && { cost }),
    ...(schema && { schema }),
  };
}

/** Kinds of act that run from the decided arguments alone. For a file act these are all but the path. */
const RUNS_AS_CHANGED: ReadonlySet<ActionKind> = new Set<ActionKind>(['tool', 'extension', 'fs.read', 'fs.write']);

/** Why these arguments do not fit this act; undefined when they do. */
function unfitting(act: PendingAct, again: Changeable, args: JsonObject): string | undefined {
  if (holdsMarker(args)) return 'they hold a mark of something redacted; send the values themselves';
  const trouble = argumentsTrouble({ input_schema: again.schema ?? null } as Skill, args);
  if (trouble) return trouble;
  if (act.kind === 'fs.read' || act.kind === 'fs.write') {
    if (args.path !== act.arguments.path)
      return 'the path of a file act cannot be changed; refuse it and ask for the other';
    const foreign = Object.keys(args).find((name) => !FILE_MEMBERS.has(name));
    return foreign === undefined ? undefined : `a file act has no argument ${JSON.stringify(foreign)}`;
  }
  if (act.target === undefined || again.mounted) return undefined;
  const named = memberNaming(act);
  if (named === undefined)
    return 'what it touches was worked out from its arguments, which therefore cannot be changed';
  return typeof own(args, named) === 'string' ? undefined : `${named} says what it touches and has to be a text`;
}
const FILE_MEMBERS = new Set(['path', 'content', 'line', 'limit']);

/** The argument that names the act's target. */
function memberNaming({ target, arguments: args }: Pick<Action, 'target' | 'arguments'>): string | undefined {
  return Object.keys(args).find((name) => own(args, name) === target);
}

function targetAfter(act: Pick<Action, 'kind' | 'target' | 'arguments'>, args: JsonObject): string | undefined {
  if (act.target === undefined || act.kind.startsWith('fs.')) return act.target;
  const named = memberNaming(act);
  const value = named === undefined ? undefined : own(args, named);
  return typeof value === 'string' ? value : act.target;
}

/** A view of the log has marks in place of secrets; if one were sent back, the mark would run in the secret's place. */
function holdsMarker(value: Json | undefined): boolean {
  if (typeof value === 'string') return value.includes('[redacted: ');
  if (typeof value !== 'object' || value === null) return false;
  return Object.values(value).some(holdsMarker);
}

function canonicalOf(args: JsonObject, canonical: (value: Json) => string): string {
  try {
    return canonical(args);
  } catch (cause) {
    throw new Fault('invalid_request', 'the arguments cannot run: they have no canonical form', {
      param: '/arguments',
      cause,
    });
  }
}

function unchangeable({ id }: AskRecord, why: string): Fault {
  return new Fault('invalid_request', `question ${id} cannot be answered with other arguments: ${why}`, {
    param: '/arguments',
    details: { ask_id: id, code: 'cannot_change' },
  });
}
