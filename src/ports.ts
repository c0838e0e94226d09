/**
 * Every interface the outside implements, on one screen. Core knows these and nothing behind them. What each of them
 * promises and expects stands beside it, in src/ports.
 */

// ---- North: whoever asks, and all that a door gets ----

export type { Accepted, Bridge, Delivery, FrontDoor, OfferChange } from './ports/doors.ts';

// ---- North: the one HTTP port of the house, and who stands before it ----

export type { Authenticate, HttpHandler, HttpHost, LoginPlace, UpgradeHandler } from './ports/http.ts';

// ---- South: whoever does the work, what it is given, and the four verbs it has ----

export type {
  Abilities,
  About,
  ActResult,
  AgentBackend,
  AgentFace,
  HeldEffect,
  Question,
  Run,
  Sink,
  Work,
} from './ports/agents.ts';

// ---- South: whoever runs single calls ----

export type { Line, PassedRequest, ToolBackend } from './ports/tools.ts';

// ---- Whoever says what may happen, and how much of it ----

export type { ActReader, PolicyEngine, QuotaRules } from './ports/policy.ts';

// ---- Where everything is kept, durably or not at all ----

export type {
  At,
  Change,
  Closable,
  Committed,
  Draft,
  EventRange,
  FilterName,
  ListQuery,
  Projector,
  ReceiptQuery,
  Row,
  Store,
  StoredReceipt,
  Unit,
} from './ports/store.ts';

// ---- What people are asked about, whole, beside the log ----

export type { PendingActs, ReadFileText } from './ports/pending-acts.ts';

// ---- Receipts, and the hashes that hold them together ----

export type {
  Account,
  ChainHead,
  ReceiptClaim,
  ReceiptIssuer,
  Refusal,
  ReplayClaim,
  ReportedAct,
  SealedReceipt,
  TreeNode,
} from './ports/proof.ts';

// ---- Time, names, keys and our own log, so that a replay can answer from the record ----

export type { Clock, Ids, Logger, Signer } from './ports/surroundings.ts';

// ---- A protocol as the house mounts it: what it offers, and what it is handed ----

export type { Adapter, Deps, Part } from './ports/adapters.ts';
