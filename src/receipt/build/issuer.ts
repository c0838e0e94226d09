/**
 * The receipt port as the core knows it: one running account per task, sealed once at the end. Holds no state beyond the accounts
 * it returns, and reads no clock.
 */
import type { CoreEvent, EventDraft } from '../../model/events.ts';
import type { Receipt, ReplayMaterial } from '../../model/receipt.ts';
import { AUTONOMY_TIERS, type AutonomyTier } from '../../model/words.ts';
import type {
  Account,
  ChainHead,
  ReceiptClaim,
  ReceiptIssuer,
  ReplayClaim,
  SealedReceipt,
  Signer,
} from '../../ports/index.ts';
import { eventLeaf, LOG_CONTENT, logRoot, logUri } from '../merkle/event-hash.ts';
import type { RecentLeaves } from '../merkle/recent-leaves.ts';
import { hashOf } from '../seal/canonical-json.ts';
import { sealReceipt } from '../seal/seal.ts';
import { buildReceipt } from './build.ts';
import { doing } from './call-summaries.ts';
import { commit, copyOf, createEvidence, learn, type TaskEvidence } from './evidence.ts';
import { replayInput } from './materials.ts';
import { refusalOf } from './tool-calls.ts';

export interface IssuerOptions {
  readonly signer: Signer;
  /** The issuer as configured, without a key id, which the signer knows. */
  readonly issuer: Omit<Receipt['issuer'], 'public_key_id'>;
  /** The product's name, put into receipts of replays. */
  readonly source: string;
  /** Receives the leaf of each event that is added to an account. */
  readonly leaves?: Pick<RecentLeaves, 'note'>;
}

export function createIssuer(options: IssuerOptions): ReceiptIssuer {
  const currentIssuer = createCurrentIssuer(options);
  return {
    hash: hashOf,
    logRoot,
    account: () => createAccount(options, currentIssuer),
    sealer(at) {
      const { signer, issuer } = options;
      return { issuer: issuer.id, key_id: (at !== undefined && signer.keyIdAt?.(at)) || signer.keyId };
    },
    eventHash: eventLeaf,
  };
}

/** The issuer with the key in use now: the same object for every receipt until the key changes. */
function createCurrentIssuer({ signer, issuer }: IssuerOptions): () => Receipt['issuer'] {
  let known: Receipt['issuer'] = issuer;
  return () => {
    const public_key_id = signer.keyId;
    if (known.public_key_id !== public_key_id) known = { ...issuer, public_key_id };
    return known;
  };
}

function createAccount(options: IssuerOptions, currentIssuer: () => Receipt['issuer']): Account {
  const { signer, issuer, source, leaves } = options;
  const evidence = createEvidence();

  function seal(claim: ReceiptClaim, head: ChainHead, written: readonly CoreEvent[] = []): SealedReceipt {
    const { task, times, replay } = claim;
    // On a copy: a commit that fails is tried again, and must find the account unchanged.
    const full = copyOf(evidence);
    for (const draft of claim.last) foldDraft(full, draft, times.completed_at);
    if (!replay) for (const event of written) if (isOf(task.id, event)) commit(full, event);
    const unsealed = buildReceipt({
      receipt_id: claim.receipt_id,
      evidence: full,
      task,
      end: {
        state: claim.final_state,
        failure: task.failure ?? null,
        ...(claim.not_reported && { not_reported: claim.not_reported }),
        ...(claim.still_running && { still_running: true }),
        ...(claim.interrupted && { interrupted: true }),
      },
      times,
      // A replay must be identical under any key, so it names none; its signature does.
      issuer: replay ? issuer : currentIssuer(),
      ...(claim.tenant_id && { identifiers: { tenant_id: claim.tenant_id } }),
      trust: trustOf(claim, full),
      ...(claim.budget_limit && { budget_limit: claim.budget_limit }),
      ...(claim.limits && { limits: claim.limits }),
      replay_input: replay ? replayed(replay) : replayInput(full, task.id),
      ...(replay && {
        deltas: replay.deltas,
        replay: { source, source_task_id: replay.source_task_id, mode: replay.mode },
      }),
    });
    return sealReceipt(unsealed, head, signer);
  }

  // Assigned with each event: a getter costs a microsecond for every account that is opened.
  const account: Writable<Account> = {
    sequence: evidence.sequence,
    add(event: CoreEvent) {
      // Only the task's own sequence can show a gap; other events of the task are accepted in any order.
      if (event.resource.object === 'task' && event.sequence !== evidence.sequence + 1) return;
      const leaf = learn(evidence, event);
      if (leaf !== undefined) leaves?.note(event, leaf);
      account.sequence = evidence.sequence;
    },
    open() {
      const calls = [...evidence.calls.open.values()].sort((a, b) => a.order - b.order);
      return calls.flatMap((call) => {
        const state = doing(call);
        return state ? [{ tool_call_id: call.call_id, name: call.tool, cleared: state === 'running' }] : [];
      });
    },
    refusal: (callId, reason) => refusalOf(evidence.calls, callId, reason),
    seal,
  };
  return account;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

function isOf(taskId: string, { resource }: CoreEvent): boolean {
  return resource.object === 'task' && resource.id === taskId;
}

/** An event of the commit that ends the task: it has no id or position yet, but it counts. */
function foldDraft(evidence: TaskEvidence, draft: EventDraft, at: string): void {
  const { cursor, sequence } = evidence;
  const event: CoreEvent = {
    id: cursor ?? '',
    object: 'event',
    created_at: at,
    updated_at: at,
    sequence,
    ...draft,
    metadata: draft.metadata ?? {},
  };
  evidence.cursor = undefined;
  learn(evidence, event);
  evidence.cursor = cursor;
}

function trustOf({ tiers }: ReceiptClaim, evidence: TaskEvidence): Partial<Receipt['trust']> {
  const tier = (word: string): AutonomyTier | undefined => AUTONOMY_TIERS.find((known) => known === word);
  const [start_tier, end_tier, policy_ref] = [tier(tiers.start), tier(tiers.end), evidence.policy_versions.at(-1)];
  const trust: Writable<Partial<Receipt['trust']>> = {};
  if (end_tier) trust.end_tier = end_tier;
  if (policy_ref) trust.policy_ref = policy_ref;
  if (start_tier) trust.start_tier = start_tier;
  return trust;
}

function replayed(replay: ReplayClaim): Receipt['replay_input'] {
  const log: ReplayMaterial = {
    content_type: LOG_CONTENT,
    id: `event_log_${replay.source_task_id}`,
    kind: 'event_log',
    metadata: { task_id: replay.source_task_id },
    sha256: replay.source_hash,
    uri: logUri(replay.source_task_id),
  };
  return {
    determinism: replay.unavailable ? 'unavailable' : replay.refreshed ? 'best_effort' : 'byte_deterministic',
    materials: [log, ...replay.materials],
    ...(replay.unavailable && { unavailable_reason: replay.unavailable }),
  };
}
