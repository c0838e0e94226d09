/**
 * Every interface that code outside core implements, on one screen. Core imports these and nothing behind them. The contract of
 * each stands beside it, in src/ports.
 */

// ---- Server side: doors, and the bridge they call ----

export type { Accepted, Bridge, Delivery, FrontDoor, StreamClient, ToolChange } from './doors.ts';

// ---- Server side: the gateway's one HTTP port and its authentication ----

export type {
  Authenticate,
  Described,
  HttpHandler,
  HttpHost,
  HttpRoute,
  InternalLink,
  LoginSource,
  NameLocation,
  UpgradeHandler,
} from './http.ts';

// ---- Client side: agent backends, the work they are given, and their sink ----

export type {
  Abilities,
  About,
  ActResult,
  AddressState,
  AgentBackend,
  AgentFace,
  AgentSkill,
  AgentTerms,
  HeldEffect,
  Question,
  RecordedInputs,
  Run,
  Sink,
  Work,
} from './agents.ts';
export type {
  InputCommand,
  InputDescription,
  InputGrant,
  InputSpec,
  SessionInputsView,
} from './session-inputs.ts';

// ---- Client side: tool backends ----

export type {
  CallLimit,
  InspectContent,
  PassedRequest,
  ReferenceOf,
  RequestContext,
  ToolBackend,
  ToolCallCount,
  ToolPrograms,
  ToolServerState,
  UnlistedCall,
} from './tools.ts';
export { wrapTools } from './tools.ts';

// ---- Policy: decisions and quotas ----

export type {
  ActReader,
  HypotheticalAct,
  LimitPassed,
  Permissions,
  PolicyEngine,
  QuotaRules,
  RuleDraft,
} from './policy.ts';

// ---- The store: durable commits and projections ----

export type {
  At,
  Change,
  Closable,
  Committed,
  Draft,
  EventRange,
  EventStream,
  FilterName,
  GrownNode,
  Lease,
  ListQuery,
  LogTree,
  LogTreeState,
  Missing,
  Projector,
  ReceiptQuery,
  Row,
  RowsReport,
  Store,
  StoredReceipt,
  Unit,
} from './store.ts';

// ---- Unredacted acts of open questions, kept beside the log ----

export type { PendingActs, ReadFileText } from './pending-acts.ts';

// ---- Keys, sign-ins and switches of the installation, kept beside the log ----

export type { PrivateFiles } from './private-files.ts';

// ---- Receipts, and the hashes that hold them together ----

export type {
  Account,
  CallerReference,
  ChainHead,
  ReceiptClaim,
  ReceiptIssuer,
  RefusedCall,
  ReplayClaim,
  ReportedAct,
  SealedReceipt,
  TreeNode,
} from './proof.ts';

// ---- Clock, ids, keys and the process log, as ports so that a replay can answer from the record ----

export type { Clock, Ids, Logger, Signer } from './surroundings.ts';

// ---- Adapters: the parts they offer, and the dependencies they are handed ----

export type { Adapter, AdapterPart, Deps, FrameView, OpenRelay, PartContext, RefusedFrame, Relay } from './adapters.ts';
export { part } from './adapters.ts';
export type { SecretUser, VaultAccess } from './vaults.ts';
