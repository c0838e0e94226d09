/** Every structure of the protocol, as a decoder. Names are the protocol's. Pure. */
import {
  EVENT_TYPES,
  type Family,
  RUN_STATES,
  TASK_ITEM_STATES,
  VERIFICATION_STATES,
  WORDS,
} from '../../mappings/ahp.ts';
import {
  any,
  bool,
  choice,
  type Decode,
  i32,
  i64,
  list,
  listOr,
  map,
  may,
  maybe,
  needs,
  number,
  or,
  struct,
  tagged,
  text,
  u32,
  u64,
  word,
} from './decode.ts';

const texts = list(text);
const metadata = may(map);
const reason = needs(text);

const fact = struct({ content: needs(text), source: needs(text), confidence: needs(number) });
const strategy = choice(WORDS.strategy, { custom: text });
const intent = word(WORDS.intent);

const target = choice([], {
  entity: struct({ name: needs(text), entity_type: needs(text), identifier: maybe(text) }),
  location: struct({ path: needs(text), location_type: needs(text) }),
  event: struct({
    description: needs(text),
    event_type: needs(text),
    time_range: maybe(struct({ from: maybe(i64), to: maybe(i64), relative: may(text) })),
  }),
  relation: struct({ entities: needs(texts), relation_type: needs(text) }),
  rule: struct({ name: needs(text), rule_type: needs(text), scope: maybe(text) }),
  state: struct({ target: needs(text), aspect: needs(text), include_history: needs(bool) }),
  resource: struct({ name: needs(text), resource_type: needs(text), constraints: maybe(any) }),
  pattern: struct({ pattern: needs(text), pattern_type: needs(text) }),
});

const context = struct({
  recent_facts: may(list(fact)),
  memory_summary: may(struct({ memory_type: needs(text), total_items: needs(u64), recent_topics: needs(texts) })),
  session_stats: may(
    struct({ total_actions: needs(u64), total_tokens: needs(i32), duration_ms: needs(u64), error_count: needs(u64) }),
  ),
  current_task: may(text),
  capabilities: may(map),
});

const event = struct({
  event_type: needs(word(EVENT_TYPES)),
  session_id: needs(text),
  agent_id: needs(text),
  timestamp: needs(text),
  depth: needs(u32),
  payload: needs(any),
  context: may(context),
  metadata,
});

const artifact = struct({
  id: needs(text),
  kind: may(text),
  uri: may(text),
  path: may(text),
  mime_type: may(text),
  sha256: may(text),
  size_bytes: may(u64),
  summary: may(text),
});
const evidence = struct({ kind: needs(text), summary: needs(text), artifact: may(artifact), metadata });
const run = { run_id: needs(text), session_id: needs(text) };
const verificationStatus = word(VERIFICATION_STATES);
const taskItem = struct({
  id: needs(text),
  title: needs(text),
  status: needs(word(TASK_ITEM_STATES)),
  depends_on: listOr(text),
  evidence: listOr(evidence),
  artifacts: listOr(artifact),
  error: may(text),
  updated_at: may(text),
  metadata,
});
const check = struct({
  id: needs(text),
  subject: needs(text),
  status: needs(verificationStatus),
  command: may(text),
  message: may(text),
  evidence: listOr(evidence),
  artifacts: listOr(artifact),
  metadata,
});

const generic = tagged('decision', {
  allow: { modified_payload: may(any), metadata },
  block: { reason, metadata },
  modify: { modified_payload: needs(any), metadata },
  defer: { retry_after_ms: needs(u64), reason: may(text) },
  escalate: { reason, escalation_target: may(text) },
});

const refusal = { block: { reason, metadata } };

export const decisionShapes: Readonly<Record<Family, Decode>> = {
  generic,
  idle: tagged('decision', { allow: {}, defer: { reason: may(text) } }),
  intent_detection: tagged('decision', {
    allow: {
      detected_intent: needs(text),
      confidence: needs(number),
      target_hints: may(struct({ target_type: may(text), target_name: may(text), domain: may(text) })),
    },
    block: { reason },
  }),
  context_perception: tagged('decision', {
    allow: {
      injected_context: needs(
        struct({
          facts: needs(list(fact)),
          file_contents: may(list(struct({ path: needs(text), snippet: needs(text), relevance_score: needs(number) }))),
          project_summary: may(
            struct({
              project_name: needs(text),
              language: may(text),
              key_files: may(texts),
              structure_description: needs(text),
            }),
          ),
          knowledge: may(texts),
          suggestions: may(texts),
        }),
      ),
      metadata,
    },
    ...refusal,
    refine: { refined_intent: maybe(intent), refined_target: maybe(target), scope_hints: needs(texts) },
  }),
  memory_recall: tagged('decision', { allow: { injected_facts: needs(list(fact)), metadata }, ...refusal }),
  planning: tagged('decision', {
    allow: { selected_strategy: needs(strategy), planning_template: may(any), metadata },
    ...refusal,
    modify: { modified_task: needs(text), hints: may(texts) },
  }),
  reasoning: tagged('decision', { allow: { hints: may(texts), metadata }, ...refusal }),
  rate_limit: tagged('decision', {
    retry: { retry_after_ms: needs(u64), metadata },
    queue: {},
    skip: { reason },
  }),
  confirmation: tagged('decision', { escalate: {}, approve: {}, reject: { reason } }),
};

/** Payloads with a defined shape, by the event they travel in. */
export const payloadShapes = {
  idle: struct({
    idle_duration_ms: needs(u64),
    idle_reason: needs(text),
    last_event_type: may(text),
    suggested_action: may(text),
  }),
  intent_detection: struct({
    session_id: needs(text),
    prompt: needs(text),
    workspace: needs(text),
    language_hint: may(text),
  }),
  context_perception: struct({
    session_id: needs(text),
    intent: needs(intent),
    target: needs(target),
    domain: or(word(WORDS.domain), 'general'),
    preferred_modality: or(word(WORDS.modality), 'any'),
    urgency: or(word(WORDS.urgency), 'normal'),
    freshness: or(word(WORDS.freshness), 'static'),
    context: needs(
      struct({
        workspace: needs(text),
        current_task: may(text),
        query: may(text),
        relevant_history: may(list(struct({ item_type: needs(text), content: needs(text), timestamp: needs(i64) }))),
      }),
    ),
    constraints: or(
      struct({ max_results: maybe(u64), max_context_length: maybe(u64), include_sources: or(bool, true) }),
      { max_results: null, max_context_length: null, include_sources: true },
    ),
    metadata,
  }),
  memory_recall: struct({
    session_id: needs(text),
    query: needs(text),
    memory_type: needs(text),
    max_results: needs(u64),
    working_directory: needs(text),
  }),
  planning: struct({
    session_id: needs(text),
    task_description: needs(text),
    available_strategies: needs(list(strategy)),
    constraints: may(any),
  }),
  reasoning: struct({
    session_id: needs(text),
    reasoning_type: needs(choice(WORDS.reasoning, { other: text })),
    problem_statement: needs(text),
    hints: may(texts),
  }),
  rate_limit: struct({
    session_id: needs(text),
    limit_type: needs(choice(WORDS.limit, { custom: text })),
    retry_after_ms: needs(u64),
    current_usage: needs(text),
  }),
  confirmation: struct({
    session_id: needs(text),
    confirmation_type: needs(choice(WORDS.confirmation, { custom: text })),
    message: needs(text),
    options: may(texts),
  }),
  run_lifecycle: struct({
    ...run,
    status: needs(word(RUN_STATES)),
    prompt: may(text),
    result_summary: may(text),
    error: may(text),
    started_at: may(text),
    updated_at: needs(text),
    metadata,
  }),
  task_list: struct({
    ...run,
    tasks: needs(list(taskItem)),
    updated_at: needs(text),
    metadata,
  }),
  verification: struct({
    ...run,
    status: needs(verificationStatus),
    checks: listOr(check),
    residual_risks: listOr(text),
    updated_at: needs(text),
    metadata,
  }),
  heartbeat: struct({
    uptime_ms: needs(u64),
    total_events_processed: needs(u64),
    current_state: needs(text),
    cpu_percent: may(number),
    memory_bytes: may(u64),
    active_tools: may(u64),
    pending_actions: may(u64),
    queue_depth: may(u64),
    tokens_used: may(i32),
  }),
  success: struct({
    session_id: needs(text),
    action_type: needs(text),
    action_summary: needs(text),
    duration_ms: needs(u64),
  }),
} as const satisfies Readonly<Record<string, Decode>>;
export type TypedEvent = keyof typeof payloadShapes;

const info = { version: needs(text), capabilities: needs(texts) };
const agentInfo = struct({ framework: needs(text), ...info });
const harnessInfo = struct({ name: needs(text), ...info });
const harnessConfig = struct({ timeout_ms: may(u64), batch_size: may(u64), max_depth: may(u32) });
const errorObject = struct({ code: needs(i32), message: needs(text), data: may(any) });

/** Envelopes and their contents, by the names of the protocol's types. */
export const shapes = {
  AhpRequest: struct({ jsonrpc: needs(text), id: needs(text), method: needs(text), params: needs(any) }),
  AhpNotification: struct({ jsonrpc: needs(text), method: needs(text), params: needs(any) }),
  AhpResponse: struct({
    jsonrpc: needs(text),
    id: needs(text),
    result: may(any),
    error: may(errorObject),
  }),
  AhpEvent: event,
  HandshakeRequest: struct({
    protocol_version: needs(text),
    agent_info: needs(agentInfo),
    session_id: needs(text),
    agent_id: needs(text),
  }),
  HandshakeResponse: struct({
    protocol_version: needs(text),
    harness_info: needs(harnessInfo),
    session_token: may(text),
    config: may(harnessConfig),
  }),
  QueryRequest: struct({
    session_id: needs(text),
    agent_id: needs(text),
    query_type: needs(text),
    payload: needs(any),
    // Not part of the protocol: the harnesses a query came through, so that it does not loop.
    metadata: may(any),
  }),
  QueryResponse: struct({ answer: needs(any), reason: may(text), alternatives: may(texts) }),
  BatchRequest: struct({ events: needs(list(event)) }),
  BatchResponse: struct({ decisions: needs(list(generic)) }),
  PerceptionTarget: target,
  PerceptionIntent: intent,
  PlanningStrategy: strategy,
  EventType: word(EVENT_TYPES),
  EventContext: context,
  Fact: fact,
  ArtifactRef: artifact,
  EvidenceRef: evidence,
  TaskItem: taskItem,
  VerificationCheck: check,
  VerificationStatus: verificationStatus,
  RunStatus: word(RUN_STATES),
  TaskStatus: word(TASK_ITEM_STATES),
  AgentInfo: agentInfo,
  HarnessInfo: harnessInfo,
  HarnessConfig: harnessConfig,
  AhpErrorObject: errorObject,
} as const satisfies Readonly<Record<string, Decode>>;
