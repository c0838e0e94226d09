/** Every structure of the AHP as the protocol's own types declare it, written down a second time. */
import { type Member, many } from './cases.ts';
import {
  CHECK,
  CONFIRMATION,
  DOMAIN,
  EVENT,
  INTENT,
  ITEM,
  LIMIT,
  MODALITY,
  REASONING,
  RUN,
  STRATEGY,
} from './words.ts';

const text: Member = ['!', 'text'];
const maybeText: Member = ['?', 'text'];
const metadata: Member = ['?', 'map'];
const reason = text;
const fact = { content: text, source: text, confidence: ['!', 'number'] } as const satisfies Record<string, Member>;

const artifact: Record<string, Member> = {
  id: text,
  kind: maybeText,
  uri: maybeText,
  path: maybeText,
  mime_type: maybeText,
  sha256: maybeText,
  size_bytes: ['?', 'u64'],
  summary: maybeText,
};

const evidence: Record<string, Member> = { kind: text, summary: text, artifact: ['?', { of: artifact }], metadata };

const context: Record<string, Member> = {
  recent_facts: ['?', many(fact)],
  memory_summary: ['?', { of: { memory_type: text, total_items: ['!', 'u64'], recent_topics: ['!', 'texts'] } }],
  session_stats: [
    '?',
    {
      of: {
        total_actions: ['!', 'u64'],
        total_tokens: ['!', 'i32'],
        duration_ms: ['!', 'u64'],
        error_count: ['!', 'u64'],
      },
    },
  ],
  current_task: maybeText,
  capabilities: metadata,
};

const item: Record<string, Member> = {
  id: text,
  title: text,
  status: ['!', ITEM],
  depends_on: ['=', 'texts'],
  evidence: ['=', many(evidence)],
  artifacts: ['=', many(artifact)],
  error: maybeText,
  updated_at: maybeText,
  metadata,
};

const check: Record<string, Member> = {
  id: text,
  subject: text,
  status: ['!', CHECK],
  command: maybeText,
  message: maybeText,
  evidence: ['=', many(evidence)],
  artifacts: ['=', many(artifact)],
  metadata,
};

const event: Record<string, Member> = {
  event_type: ['!', EVENT],
  session_id: text,
  agent_id: text,
  timestamp: text,
  depth: ['!', 'u32'],
  payload: ['!', 'any'],
  context: ['?', { of: context }],
  metadata,
};

const info: Record<string, Member> = { version: text, capabilities: ['!', 'texts'] };
const ANYWHERE = { max_results: null, max_context_length: null, include_sources: true };

export const STRUCTURES: Record<string, Record<string, Member>> = {
  AhpRequest: { jsonrpc: text, id: text, method: text, params: ['!', 'any'] },
  AhpNotification: { jsonrpc: text, method: text, params: ['!', 'any'] },
  AhpResponse: {
    jsonrpc: text,
    id: text,
    result: ['?', 'any'],
    error: ['?', { of: { code: ['!', 'i32'], message: text, data: ['?', 'any'] } }],
  },
  AhpErrorObject: { code: ['!', 'i32'], message: text, data: ['?', 'any'] },
  AhpEvent: event,
  EventContext: context,
  Fact: fact,
  ArtifactRef: artifact,
  EvidenceRef: evidence,
  TaskItem: item,
  VerificationCheck: check,
  HandshakeRequest: {
    protocol_version: text,
    agent_info: ['!', { of: { framework: text, ...info } }],
    session_id: text,
    agent_id: text,
  },
  AgentInfo: { framework: text, ...info },
  HarnessInfo: { name: text, ...info },
  HarnessConfig: { timeout_ms: ['?', 'u64'], batch_size: ['?', 'u64'], max_depth: ['?', 'u32'] },
  HandshakeResponse: {
    protocol_version: text,
    harness_info: ['!', { of: { name: text, ...info } }],
    session_token: maybeText,
    config: ['?', { of: { timeout_ms: ['?', 'u64'], batch_size: ['?', 'u64'], max_depth: ['?', 'u32'] } }],
  },
  QueryRequest: { session_id: text, agent_id: text, query_type: text, payload: ['!', 'any'] },
  QueryResponse: { answer: ['!', 'any'], reason: maybeText, alternatives: ['?', 'texts'] },
  BatchRequest: { events: ['!', many(event)] },
  IdleEvent: {
    idle_duration_ms: ['!', 'u64'],
    idle_reason: text,
    last_event_type: maybeText,
    suggested_action: maybeText,
  },
  HeartbeatEvent: {
    uptime_ms: ['!', 'u64'],
    total_events_processed: ['!', 'u64'],
    current_state: text,
    cpu_percent: ['?', 'number'],
    memory_bytes: ['?', 'u64'],
    active_tools: ['?', 'u64'],
    pending_actions: ['?', 'u64'],
    queue_depth: ['?', 'u64'],
    tokens_used: ['?', 'i32'],
  },
  SuccessEvent: { session_id: text, action_type: text, action_summary: text, duration_ms: ['!', 'u64'] },
  IntentDetectionEvent: { session_id: text, prompt: text, workspace: text, language_hint: maybeText },
  ContextPerceptionEvent: {
    session_id: text,
    intent: ['!', INTENT],
    target: ['!', 'target'],
    domain: ['=', DOMAIN, 'general'],
    preferred_modality: ['=', MODALITY, 'any'],
    urgency: ['=', ['critical', 'high', 'normal', 'low'], 'normal'],
    freshness: ['=', ['realtime', 'recent', 'static'], 'static'],
    context: [
      '!',
      {
        of: {
          workspace: text,
          current_task: maybeText,
          query: maybeText,
          relevant_history: ['?', many({ item_type: text, content: text, timestamp: ['!', 'i64'] })],
        },
      },
    ],
    constraints: [
      '=',
      { of: { max_results: ['n', 'u64'], max_context_length: ['n', 'u64'], include_sources: ['=', 'bool', true] } },
      ANYWHERE,
    ],
    metadata,
  },
  MemoryRecallEvent: {
    session_id: text,
    query: text,
    memory_type: text,
    max_results: ['!', 'u64'],
    working_directory: text,
  },
  PlanningEvent: {
    session_id: text,
    task_description: text,
    available_strategies: ['!', 'strategies'],
    constraints: ['?', 'any'],
  },
  ReasoningEvent: {
    session_id: text,
    reasoning_type: ['!', REASONING],
    problem_statement: text,
    hints: ['?', 'texts'],
  },
  RateLimitEvent: {
    session_id: text,
    limit_type: ['!', LIMIT],
    retry_after_ms: ['!', 'u64'],
    current_usage: text,
  },
  ConfirmationEvent: {
    session_id: text,
    confirmation_type: ['!', CONFIRMATION],
    message: text,
    options: ['?', 'texts'],
  },
  RunLifecycleEvent: {
    run_id: text,
    session_id: text,
    status: ['!', RUN],
    prompt: maybeText,
    result_summary: maybeText,
    error: maybeText,
    started_at: maybeText,
    updated_at: text,
    metadata,
  },
  TaskListEvent: { run_id: text, session_id: text, tasks: ['!', many(item)], updated_at: text, metadata },
  VerificationEvent: {
    run_id: text,
    session_id: text,
    status: ['!', CHECK],
    checks: ['=', many(check)],
    residual_risks: ['=', 'texts'],
    updated_at: text,
    metadata,
  },
};

/** Distinguished by `decision`. */
export const DECISIONS: Record<string, Record<string, Record<string, Member>>> = {
  Decision: {
    allow: { modified_payload: ['?', 'any'], metadata },
    block: { reason, metadata },
    modify: { modified_payload: ['!', 'any'], metadata },
    defer: { retry_after_ms: ['!', 'u64'], reason: maybeText },
    escalate: { reason, escalation_target: maybeText },
  },
  IdleDecision: { allow: {}, defer: { reason: maybeText } },
  IntentDetectionDecision: {
    allow: {
      detected_intent: text,
      confidence: ['!', 'number'],
      target_hints: ['?', { of: { target_type: maybeText, target_name: maybeText, domain: maybeText } }],
    },
    block: { reason },
  },
  ContextPerceptionDecision: {
    allow: {
      injected_context: [
        '!',
        {
          of: {
            facts: ['!', many(fact)],
            file_contents: ['?', many({ path: text, snippet: text, relevance_score: ['!', 'number'] })],
            project_summary: [
              '?',
              {
                of: {
                  project_name: text,
                  language: maybeText,
                  key_files: ['?', 'texts'],
                  structure_description: text,
                },
              },
            ],
            knowledge: ['?', 'texts'],
            suggestions: ['?', 'texts'],
          },
        },
      ],
      metadata,
    },
    block: { reason, metadata },
    refine: { refined_intent: ['n', INTENT], refined_target: ['n', 'target'], scope_hints: ['!', 'texts'] },
  },
  MemoryRecallDecision: { allow: { injected_facts: ['!', many(fact)], metadata }, block: { reason, metadata } },
  PlanningDecision: {
    allow: { selected_strategy: ['!', STRATEGY], planning_template: ['?', 'any'], metadata },
    block: { reason, metadata },
    modify: { modified_task: text, hints: ['?', 'texts'] },
  },
  ReasoningDecision: { allow: { hints: ['?', 'texts'], metadata }, block: { reason, metadata } },
  RateLimitDecision: { retry: { retry_after_ms: ['!', 'u64'], metadata }, queue: {}, skip: { reason } },
  ConfirmationDecision: { escalate: {}, approve: {}, reject: { reason } },
};

export const TARGETS: Record<string, Record<string, Member>> = {
  entity: { name: text, entity_type: text, identifier: ['n', 'text'] },
  location: { path: text, location_type: text },
  event: {
    description: text,
    event_type: text,
    time_range: ['n', { of: { from: ['n', 'i64'], to: ['n', 'i64'], relative: maybeText } }],
  },
  relation: { entities: ['!', 'texts'], relation_type: text },
  rule: { name: text, rule_type: text, scope: ['n', 'text'] },
  state: { target: text, aspect: text, include_history: ['!', 'bool'] },
  resource: { name: text, resource_type: text, constraints: ['n', 'any'] },
  pattern: { pattern: text, pattern_type: text },
};
