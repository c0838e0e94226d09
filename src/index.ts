/**
 * The package's public exports: the types of the model, the ports, and the functions an adapter needs. Each name here is a promise.
 * The running gateway is a second entry point, `tollbridge/gateway`, because it mounts adapters that import this one.
 */

export { isGrantable } from './core/approvals/grants.ts';
export { mayAnswer } from './core/approvals/may-answer.ts';
export { isReworded, ownDefinition } from './core/tools/upstream-definition.ts';
export { type Dialog, dialogFor, dialogText } from './inbox/question-text.ts';
export type {
  Action,
  ActionKind,
  Actor,
  CallerOfCall,
  Decision,
  FileChange,
  NewArtifact,
  SideEffect,
  ToolResult,
  Usage,
} from './model/actions.ts';
export { ACTION_KINDS } from './model/actions.ts';
export type { Answer, AskKind, AskState, PendingAct } from './model/asks.ts';
export { ASK_STATES, AskRecord } from './model/asks.ts';
export type {
  Command,
  CommandBody,
  CommandKind,
  CommandOf,
  DeclaredKind,
  End,
  Fact,
  MountedTool,
} from './model/commands.ts';
export { COMMANDS, DECLARED_KINDS, memoryRead, ProposedAction, ReplayOverride } from './model/commands.ts';
export type { CoreEvent, Cursor, EventDraft, EventTable, Stream, VendorKind } from './model/events.ts';
export {
  eventKind,
  isEventKind,
  isTaskEvent,
  leaveOut,
  leftOut,
  rowFor,
  vendorEvent,
  withMembers,
} from './model/events.ts';
export { asFault, FAULT_KINDS, Fault, type FaultKind, fieldName } from './model/faults.ts';
export type * from './model/payloads.ts';
export { Receipt } from './model/receipt.ts';
export {
  Artifact,
  Branch,
  Connector,
  Event,
  Failure,
  isReplay,
  type KnownPart,
  Memory,
  Message,
  MessageInput,
  Outcome,
  Part,
  PermissionRule,
  Persona,
  Pointer,
  Quota,
  RESOURCES,
  ReceiptResource,
  ReplayMark,
  type ResourceKind,
  Session,
  Skill,
  Task,
  Vault,
  Workspace,
} from './model/resources.ts';
export type { Json, JsonObject, Open } from './model/schema.ts';
export {
  ClosedWord,
  Id,
  JsonValue,
  MaybeId,
  MaybeText,
  MaybeTime,
  NonEmpty,
  Nullable,
  OpenObject,
  OpenWord,
  Timestamp,
} from './model/schema.ts';
export { evolve } from './model/task-view/evolve.ts';
export {
  answersOf,
  type CallStatus,
  type CallView,
  emptyTaskView,
  isWaiting,
  type Kept,
  type MessageView,
  partsOf,
  type TaskView,
} from './model/task-view/view.ts';
export { type Static, type TProperties, type TSchema, Type } from './model/type.ts';
export { check, validator } from './model/validate.ts';
export { asText, beginning } from './model/values/as-text.ts';
export { everyRow } from './model/values/every-row.ts';
export { type HeldName, holdName } from './model/values/held-name.ts';
export { isObject } from './model/values/is-object.ts';
export { LOSS_ASPECTS, type Loss, type LossAspect, lossIn } from './model/values/loss.ts';
export { LruMap } from './model/values/lru-map.ts';
export { mostOf } from './model/values/most-of.ts';
export { own } from './model/values/own.ts';
export { anySignal } from './model/values/signals.ts';
export { visibleLine, visibleText } from './model/values/visible-text.ts';
export { VERSION } from './model/version.ts';
export * from './model/words.ts';
export type * from './ports/index.ts';
export { part } from './ports/index.ts';
export { batchRoot } from './receipt/export/batch-root.ts';
export { encodeCbor, RECEIPT_CBOR } from './receipt/export/cbor.ts';
export { canonicalJson, comparableHash, hashOf } from './receipt/seal/canonical-json.ts';
export { verifyReceipt } from './receipt/verify/verify.ts';
