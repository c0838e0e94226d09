/** What each kind of event adds to a task's evidence. A payload that lacks the necessary members adds nothing. */

import { type CoreEvent, type LeftOut, leaveOut } from '../../model/events.ts';
import type { EventKind } from '../../model/payloads.ts';
import type { Receipt } from '../../model/receipt.ts';
import { own } from '../../model/values/own.ts';
import { AUTONOMY_TIERS } from '../../model/words.ts';
import { spellOnce } from '../seal/canonical-json.ts';
import { listed, onto, withEntry } from './append-list.ts';
import { approvalDecision, openedAsk } from './approvals.ts';
import type { TaskEvidence, UsageSum } from './evidence.ts';
import { calleeLink, callerLink, handoffLink } from './links.ts';
import { count, hashIfPossible, type Members, membersOf, sha256, sum, text, time } from './read-members.ts';
import { remoteApproval, remotelyDecided } from './remote-calls.ts';
import { alarmed, begun, decided, decidedByApprover, ended, requested } from './tool-calls.ts';

type FileWrite = Receipt['side_effects']['fs_writes'][number];
type NetworkEgress = Receipt['side_effects']['network_egress'][number];
type ArtifactRef = Receipt['final_artifacts'][number];

type Reducer = (evidence: TaskEvidence, payload: Members, event: CoreEvent) => void;

export const REDUCERS: Readonly<Record<EventKind, Reducer | LeftOut>> = {
  'task.submitted': (evidence, payload, event) => {
    const task = membersOf(payload.task);
    evidence.created_at ??= time(task.created_at) ?? time(event.created_at);
    const link = callerLink(membersOf(membersOf(task.metadata).tollbridge).caller);
    if (link) evidence.links = withEntry(evidence.links, 'caller', link);
  },
  'task.started': (evidence, payload, event) => {
    evidence.started_at ??= time(membersOf(payload.task).started_at) ?? time(event.created_at);
  },
  'task.completed': foldEnd,
  'task.failed': foldEnd,
  'task.canceled': foldEnd,
  'tool.requested': (evidence, payload) => {
    requested(evidence.calls, payload);
    const link = payload.caller === undefined ? undefined : callerLink(payload.caller, payload.tool_call_id);
    if (link) evidence.links = withEntry(evidence.links, `caller ${text(payload.tool_call_id)}`, link);
  },
  'vendor.tollbridge.decided': foldDecision,
  'tool.approved': ({ calls }, payload) => decidedByApprover(calls, payload, false),
  'tool.denied': ({ calls }, payload) => decidedByApprover(calls, payload, true),
  'vendor.tollbridge.remote_decided': (evidence, payload, event) => {
    const call = remotelyDecided(evidence.calls, payload);
    const id = call?.call_id ?? unansweredCall(evidence, payload);
    const link = id === undefined ? undefined : calleeLink(payload.link, id);
    if (link) evidence.links = withEntry(evidence.links, `callee ${id}`, link);
    const approval = call && remoteApproval(payload, event);
    if (!approval) return;
    // Our own question about the call was withdrawn because the remote one was answered: one approval, not two.
    const before = listed(evidence.approvals).filter(
      ({ approval_id, decision }) => !(decision === 'canceled' && approval_id === call.ask_id),
    );
    evidence.approvals = [...before, spellOnce(approval)].reduce(onto, undefined as TaskEvidence['approvals']);
  },
  'tool.completed': ({ calls }, payload, event) => ended(calls, payload, event),
  'tool.failed': ({ calls }, payload, event) => ended(calls, payload, event),
  'vendor.tollbridge.ask_opened': (evidence, payload) => {
    const ask = openedAsk(payload);
    if (ask) evidence.asks = withEntry(evidence.asks, ask.approval_id, ask);
  },
  'vendor.tollbridge.ask_closed': (evidence, payload, event) => {
    const id = text(payload.ask_id);
    if (!id) return;
    const ask = evidence.asks.get(id);
    evidence.asks = withEntry(evidence.asks, id, undefined);
    if (ask?.input) evidence.inputs = counted(evidence.inputs, text(payload.state) ?? 'unknown');
    else evidence.approvals = onto(evidence.approvals, spellOnce(approvalDecision(id, ask, payload, event)));
  },
  'vendor.tollbridge.ask_used': ({ calls }, payload) => begun(calls, payload),
  'vendor.tollbridge.side_effect': foldSideEffect,
  'vendor.tollbridge.usage': foldUsage,
  'agent.handoff': (evidence, payload) => {
    const target_agent = text(payload.target_agent);
    const task_id = text(payload.task_id);
    const status = HANDOFFS.find((word) => word === payload.status);
    if (!target_agent || !task_id || !status) return;
    const receipt_id = text(payload.receipt_id) ?? evidence.handoffs.get(task_id)?.receipt_id;
    const handoff = spellOnce({ ...(receipt_id && { receipt_id }), status, target_agent, task_id });
    evidence.handoffs = withEntry(evidence.handoffs, task_id, handoff);
    const link = handoffLink(payload, evidence.links.get(`callee ${task_id}`));
    if (link) evidence.links = withEntry(evidence.links, `callee ${task_id}`, link);
  },
  'artifact.created': foldArtifact,
  'artifact.updated': foldArtifact,
  'span.completed': foldModelCall,
  'vendor.tollbridge.alarm': ({ calls }, payload) => alarmed(calls, payload),
  'vendor.tollbridge.passthrough': (evidence) => {
    evidence.unmodelled += 1;
  },
  'vendor.tollbridge.recovered': (evidence) => {
    evidence.interrupted = true;
  },
  ...leaveOut(
    'the receipt states the act by its request, its decision and its end',
    'user.tool_confirmation user.input_submitted agent.tool_use agent.tool_result agent.mcp_tool_use tool.approval_required vendor.tollbridge.answer_refused',
  ),
  ...leaveOut(
    'words and state of the conversation, which are no act',
    'user.message agent.message agent.reasoning_summary vendor.tollbridge.message_delta vendor.tollbridge.plan vendor.tollbridge.note session.created session.closed session.message_appended session.compacted session.truncated session.thread_forked session.thread_merged branch.created branch.updated branch.merged branch.abandoned vendor.tollbridge.bound vendor.tollbridge.resource_created vendor.tollbridge.resource_updated vendor.tollbridge.resource_deleted',
  ),
  ...leaveOut(
    'the receipt states it by its effect: the end of the task, the limits it was held to, the decisions of a tainted session',
    'user.cancel_requested task.input_required task.auth_required task.status_changed vendor.tollbridge.quota_used vendor.tollbridge.quota_warned vendor.tollbridge.tainted',
  ),
  ...leaveOut(
    'covered by the hash over all events of the task',
    'agent.memory_read agent.memory_write artifact.linked artifact.redacted span.started span.updated span.failed vendor.tollbridge.checkpoint session.replayed replay.started replay.event_replayed replay.completed replay.failed receipt.issued',
  ),
  ...leaveOut(
    'is about no task',
    'connector.delivery_received connector.delivery_deduped connector.normalized connector.task_submitted connector.failed receipt.verified receipt.verification_failed vendor.tollbridge.login_failed vendor.tollbridge.policy_loaded vendor.tollbridge.config_loaded vendor.tollbridge.tree_head vendor.tollbridge.frame_refused',
  ),
};

/** A call that was sent to another gateway and not answered. It carries no decision, and a call with an answer is settled. */
function unansweredCall({ calls }: TaskEvidence, { verdict, tool_call_id }: Members): string | undefined {
  const id = verdict === 'unknown' ? text(tool_call_id) : undefined;
  return id !== undefined && calls.open.has(id) ? id : undefined;
}

const HANDOFFS = ['accepted', 'rejected', 'failed', 'completed'] as const;

function foldEnd(evidence: TaskEvidence, payload: Members): void {
  const words = Array.isArray(payload.not_reported) ? payload.not_reported : [];
  for (const word of words) evidence.not_reported = withWord(evidence.not_reported, text(word));
  if (payload.still_running === true) evidence.still_running = true;
}

function foldDecision(evidence: TaskEvidence, payload: Members): void {
  decided(evidence.calls, payload);
  const decision = membersOf(payload.decision);
  const verdict = text(decision.verdict);
  const named = membersOf(payload.action).tier;
  const tier = AUTONOMY_TIERS.find((word) => word === named);
  evidence.policy_versions = withWord(evidence.policy_versions, text(decision.policy_version));
  if (verdict) evidence.decisions = counted(evidence.decisions, verdict);
  if (!tier) return;
  evidence.first_tier ??= tier;
  evidence.last_tier = tier;
}

function foldModelCall(evidence: TaskEvidence, payload: Members, event: CoreEvent): void {
  const span = membersOf(payload.span);
  const call_id = text(span.call_id) ?? text(span.id);
  if (span.kind !== 'llm' || !call_id) return;
  const named = membersOf(payload.model);
  const [provider, model, version] = [text(named.provider), text(named.model), text(named.version)];
  const sha256 = hashIfPossible(payload.response);
  const key = `llm:${call_id}`;
  const metadata = { event_id: event.id, override_key: key };
  evidence.models = onto(evidence.models, {
    call_id,
    ...(provider && { provider }),
    ...(model && { model }),
    ...(version && { version }),
    ...(sha256 && { material: spellOnce({ id: key, kind: 'llm_provider_response', metadata, sha256 } as const) }),
  });
}

function foldSideEffect(evidence: TaskEvidence, payload: Members): void {
  const word = text(payload.evidence) ?? 'observed';
  if (payload.type === 'fs_write') {
    const path = text(payload.path);
    const operation = WRITES.find((each) => each === payload.operation);
    if (!path || !operation) return;
    const after = payload.after_sha256 === null ? null : sha256(payload.after_sha256);
    const before = payload.before_sha256 === null ? null : sha256(payload.before_sha256);
    const write: FileWrite = {
      ...(after !== undefined && { after_sha256: after }),
      ...(before !== undefined && { before_sha256: before }),
      operation,
      path,
    };
    evidence.effects = counted(evidence.effects, word);
    evidence.fs_writes = onto(evidence.fs_writes, spellOnce(write));
    return;
  }
  const destination = text(payload.destination);
  if (payload.type !== 'network' || !destination) return;
  const bytes_sent = count(payload.bytes_sent);
  const tool_call_id = text(payload.tool_call_id);
  const egress: NetworkEgress = {
    ...(bytes_sent !== undefined && { bytes_sent }),
    destination,
    metadata: { ...textsOf(payload.metadata), evidence: word, ...(tool_call_id && { tool_call_id }) },
    purpose: text(payload.purpose) ?? 'not said',
  };
  evidence.effects = counted(evidence.effects, word);
  evidence.network = onto(evidence.network, spellOnce(egress));
}

/** Only texts: other reported values may have no canonical form. */
function textsOf(value: unknown): Record<string, string> {
  const texts = Object.entries(membersOf(value)).flatMap(([name, member]) => {
    const words = text(member);
    return words === undefined ? [] : [[name, words] as const];
  });
  return Object.fromEntries(texts);
}

const WRITES = ['create', 'modify', 'delete', 'rename'] as const;

function foldUsage(evidence: TaskEvidence, payload: Members): void {
  const provider = text(payload.provider) ?? 'unknown';
  const model = text(payload.model);
  const key = JSON.stringify([provider, model]);
  const before = evidence.usage.get(key);
  const usd_micros = sum(before?.usd_micros, count(payload.usd_micros));
  const input_tokens = sum(before?.input_tokens, count(payload.input_tokens));
  const output_tokens = sum(before?.output_tokens, count(payload.output_tokens));
  const after: UsageSum = {
    provider,
    ...(model && { model }),
    ...(usd_micros !== undefined && { usd_micros }),
    ...(input_tokens !== undefined && { input_tokens }),
    ...(output_tokens !== undefined && { output_tokens }),
  };
  evidence.usage = withEntry(evidence.usage, key, after);
}

function foldArtifact(evidence: TaskEvidence, payload: Members): void {
  const artifact = membersOf(payload.artifact);
  const id = text(artifact.id);
  // Content that was moved out of an event only for its length is not a result of the work.
  if (!id || membersOf(artifact.metadata).spilled === true) return;
  const hash = sha256(artifact.sha256);
  const ref: ArtifactRef = {
    artifact_id: id,
    kind: text(artifact.kind) ?? 'other',
    ...(hash && { sha256: hash }),
    uri: text(artifact.uri) ?? `artifact://${id}`,
  };
  evidence.artifacts = withEntry(evidence.artifacts, id, spellOnce(ref));
}

function counted(counts: Readonly<Record<string, number>>, word: string): Readonly<Record<string, number>> {
  // Not by spreading: in Node 20 that takes a microsecond for a new key.
  return Object.assign({}, counts, { [word]: (own(counts, word) ?? 0) + 1 });
}

/** Each word once, in order of first appearance. */
export function withWord(words: readonly string[], word: string | undefined): readonly string[] {
  return word === undefined || words.includes(word) ? words : [...words, word];
}
