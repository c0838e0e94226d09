/**
 * Every structure of the protocol as its own types declare it, written down a second time: from this the cases nobody
 * recorded follow. A member left out, set to null, of another kind, out of range, in another case, and one nobody knows.
 */
import { describe, expect, test } from 'vitest';
import { shapeOf } from './conformance/ahp/compare.ts';

type Kind = keyof typeof GOOD | readonly string[] | { readonly open: readonly string[]; readonly key: string };
/** `!` has to be there; `?` may be absent or null and is left out; `n` likewise and written as null; `=` may only be absent. */
type Member = readonly [how: '!' | '?' | 'n' | '=', kind: Kind | Nested, otherwise?: unknown];
interface Nested {
  readonly of: Record<string, Member>;
  readonly many?: boolean;
}

const GOOD = {
  text: ['', 'x', 'käse 🧀', '\u0000'],
  texts: [[], ['a', '']],
  bool: [true, false],
  number: [0, 1, -1.5, 7, 0.25],
  u32: [0, 1, 4294967295],
  u64: [0, 1, 9007199254740991],
  i32: [0, -2147483648, 2147483647],
  i64: [0, -9007199254740991, 9007199254740991],
  map: [{}, { a: [null, { b: 1 }] }],
  any: ['x', 1, true, [], {}, [null]],
  strategies: [[], ['none', { custom: 'x' }]],
  target: [{ location: { path: 'p', location_type: 't' } }],
} as const;

const BAD: Record<keyof typeof GOOD, readonly unknown[]> = {
  text: [1, true, [], {}, ['x']],
  texts: ['x', 1, {}, [1], [null], [['x']]],
  bool: ['true', 0, 1, []],
  number: ['1', true, [], {}],
  u32: [-1, 0.5, 4294967296, '1', true, [], -0],
  u64: [-1, 0.5, '1', [], 1e30, -0],
  i32: [0.5, 2147483648, -2147483649, '1', {}],
  i64: [0.5, '1', 1e30, []],
  map: ['x', 1, [], true],
  any: [],
  strategies: ['none', {}, ['None'], [null], ['custom']],
  target: ['location', {}, [], { location: {} }, { Location: { path: 'p', location_type: 't' } }],
};

const text: Member = ['!', 'text'];
const maybeText: Member = ['?', 'text'];
const metadata: Member = ['?', 'map'];
const reason = text;
const many = (of: Record<string, Member>): Nested => ({ of, many: true });

const RUN = ['created', 'planning', 'executing', 'verifying', 'completed', 'failed', 'cancelled'];
const ITEM = ['pending', 'in_progress', 'completed', 'failed', 'skipped', 'cancelled'];
const CHECK = ['pending', 'running', 'passed', 'failed', 'skipped', 'needs_review'];
const INTENT = [
  'recognize',
  'understand',
  'locate',
  'retrieve',
  'explore',
  'reason',
  'validate',
  'compare',
  'track',
] as const;
const DOMAIN = [
  'coding',
  'writing',
  'data_analysis',
  'research',
  'project_management',
  'conversation',
  'operations',
  'security',
  'general',
];
const MODALITY = ['text', 'code', 'structured_data', 'table', 'chart', 'image', 'audio', 'video', 'any'];
const EVENT = [
  'handshake',
  'pre_action',
  'post_action',
  'pre_prompt',
  'post_response',
  'session_start',
  'session_end',
  'error',
  'query',
  'heartbeat',
  'idle',
  'context_perception',
  'success',
  'memory_recall',
  'planning',
  'reasoning',
  'rate_limit',
  'confirmation',
  'intent_detection',
  'run_lifecycle',
  'task_list',
  'verification',
];
const STRATEGY = { open: ['none', 'step_by_step', 'tree_of_thoughts', 'graph_planning'], key: 'custom' };
const REASONING = { open: ['chain_of_thought', 'tree_of_thoughts', 're_act', 'reflexion'], key: 'other' };
const LIMIT = {
  open: ['llm_token_limit', 'llm_request_limit', 'api_request_limit', 'tool_execution_limit'],
  key: 'custom',
};
const CONFIRMATION = { open: ['safety_confirm', 'user_confirm', 'cost_confirm'], key: 'custom' };

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

const STRUCTURES: Record<string, Record<string, Member>> = {
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

/** Told apart by `decision`. */
const DECISIONS: Record<string, Record<string, Record<string, Member>>> = {
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

const TARGETS: Record<string, Record<string, Member>> = {
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

interface Case {
  readonly note: string;
  readonly input: unknown;
  /** What it is written as again; absent when it may not be read. */
  readonly output?: unknown;
}

function targetOf(kind: string): unknown {
  return { [kind]: full(TARGETS[kind] as Record<string, Member>) };
}

/** Every member there. */
function full(members: Record<string, Member>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).map(([name, [, kind]]) => [name, one(kind)]));
}

function one(kind: Kind | Nested): unknown {
  if (typeof kind === 'string') return GOOD[kind].at(-1);
  if (Array.isArray(kind)) return kind[0];
  if ('open' in kind) return kind.open[0];
  const { of, many: list } = kind as Nested;
  return list ? [full(of)] : full(of);
}

function* casesOf(members: Record<string, Member>): Generator<Case> {
  const whole = full(members);
  const bare = Object.fromEntries(
    Object.entries(members).flatMap(([name, [how]]) => (how === '!' ? [[name, whole[name]]] : [])),
  );
  const written = Object.fromEntries(
    Object.entries(members).flatMap(([name, [how, , otherwise]]) =>
      how === 'n' ? [[name, null]] : otherwise === undefined ? [] : [[name, otherwise]],
    ),
  );
  yield { note: 'everything there', input: whole, output: whole };
  yield { note: 'only what has to be', input: bare, output: { ...written, ...bare } };
  yield { note: 'a member nobody knows', input: { ...whole, nobody_knows: 1 }, output: whole };
  for (const odd of ['x', 1, true, null, []]) yield { note: `${JSON.stringify(odd)} instead`, input: odd };
  for (const [name, [how, kind]] of Object.entries(members)) {
    const having = (value: unknown) => ({ ...whole, [name]: value });
    const { [name]: _, ...without } = whole;
    if (how === '!') yield { note: `no ${name}`, input: without };
    const nothing = how === 'n' ? { ...without, [name]: null } : without;
    if (how === '?' || how === 'n') yield { note: `${name} is null`, input: having(null), output: nothing };
    else if (kind === 'any') yield { note: `${name} is null`, input: having(null), output: having(null) };
    else yield { note: `${name} is null`, input: having(null) };
    for (const { note, input, output } of valuesOf(kind, how === '=')) {
      const left = output === LEFT_OUT ? without : having(output);
      yield { note: `${name}: ${note}`, input: having(input), ...(output !== undefined && { output: left }) };
    }
  }
}

const LEFT_OUT = Symbol('an empty list with a default is not written');

function* valuesOf(kind: Kind | Nested, sparing: boolean): Generator<Case> {
  if (typeof kind === 'string') {
    for (const good of GOOD[kind]) {
      const empty = sparing && Array.isArray(good) && good.length === 0;
      yield { note: JSON.stringify(good), input: good, output: empty ? LEFT_OUT : good };
    }
    for (const bad of BAD[kind]) yield { note: `${JSON.stringify(bad)} (${typeof bad})`, input: bad };
  } else if (Array.isArray(kind)) {
    yield* wordsOf(kind);
  } else if ('open' in kind) {
    yield* wordsOf(kind.open);
    yield { note: 'a name of its own', input: { [kind.key]: 'n' }, output: { [kind.key]: 'n' } };
    yield { note: 'its key alone', input: kind.key };
    yield { note: 'not a name', input: { [kind.key]: 1 } };
    yield { note: 'two at once', input: { [kind.key]: 'n', other_one: 'n' } };
  } else {
    const { of, many: list } = kind as Nested;
    if (list) {
      yield { note: 'none', input: [], output: sparing ? LEFT_OUT : [] };
      yield { note: 'not a list', input: full(of) };
      yield { note: 'null in it', input: [null] };
    }
    for (const { note, input, output } of casesOf(of)) {
      if (!list && input === null) continue;
      yield {
        note: `${list ? 'one: ' : ''}${note}`,
        input: list ? [full(of), input] : input,
        ...(output !== undefined && { output: list ? [full(of), output] : output }),
      };
    }
  }
}

function* wordsOf(words: readonly string[]): Generator<Case> {
  for (const word of words) {
    yield { note: word, input: word, output: word };
    yield { note: `${word} as a key`, input: { [word]: null }, output: word };
    yield { note: word.toUpperCase(), input: word.toUpperCase() };
    const camel = word.replace(/(^|_)([a-z])/g, (_, _gap: string, letter: string) => letter.toUpperCase());
    yield { note: camel, input: camel };
    if (word.includes('_')) yield { note: word.replaceAll('_', '-'), input: word.replaceAll('_', '-') };
    yield { note: `${word} and a space`, input: `${word} ` };
  }
  for (const odd of ['', 'nope', 1, true, [], {}, [words[0]], { [words[0] as string]: 1 }, { nope: null }]) {
    yield { note: JSON.stringify(odd), input: odd };
  }
}

function agree(type: string, cases: Iterable<Case>): void {
  const read = shapeOf(type);
  const wrong: string[] = [];
  let count = 0;
  for (const { note, input, output } of cases) {
    count += 1;
    let came: unknown;
    try {
      came = read(input);
    } catch {
      came = undefined;
    }
    if (JSON.stringify(sorted(came)) !== JSON.stringify(sorted(output))) {
      wrong.push(`${note}: ${JSON.stringify(input)} is read as ${JSON.stringify(came)}`);
    }
  }
  expect(wrong).toEqual([]);
  expect(count).toBeGreaterThan(5);
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, member]) => [name, sorted(member)]),
  );
}

describe('what follows from how the protocol declares its types', () => {
  test.each(Object.entries(STRUCTURES))('%s', (type, members) => agree(type, casesOf(members)));

  test.each(Object.entries(DECISIONS))('%s', (type, kinds) => {
    agree(
      type,
      Object.entries(kinds).flatMap(([decision, members]) =>
        [...casesOf(members)].map(({ note, input, output }) => {
          const tag = (value: unknown) =>
            typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value, decision } : value;
          return {
            note: `${decision}: ${note}`,
            input: tag(input),
            ...(output !== undefined && { output: tag(output) }),
          };
        }),
      ),
    );
    const words = Object.values(DECISIONS).flatMap((each) => Object.keys(each));
    const strange = words.filter((word) => !Object.hasOwn(kinds, word));
    const everything = { reason: 'r', retry_after_ms: 1, modified_payload: {}, scope_hints: [], injected_facts: [] };
    for (const decision of [...strange, 'Allow', 'BLOCK', '', 1, null, ['allow'], { allow: null }, undefined]) {
      expect(() => shapeOf(type)({ ...everything, decision })).toThrow();
    }
  });

  test('PerceptionTarget', () => {
    agree(
      'PerceptionTarget',
      Object.entries(TARGETS).flatMap(([kind, members]) =>
        [...casesOf(members)].map(({ note, input, output }) => ({
          note: `${kind}: ${note}`,
          input: { [kind]: input },
          ...(output !== undefined && { output: { [kind]: output } }),
        })),
      ),
    );
    const two = { ...(targetOf('rule') as object), ...(targetOf('state') as object) };
    for (const odd of [{}, 'entity', ['entity'], { Entity: {} }, { type: 'location', path: '.' }, two, null]) {
      expect(() => shapeOf('PerceptionTarget')(odd)).toThrow();
    }
  });

  test('PlanningEvent offers strategies by name, its own ones wrapped', () => {
    const strategies = (value: unknown) => ({ session_id: 's', task_description: 't', available_strategies: value });
    for (const { input, output } of valuesOf(STRATEGY, false)) {
      const read = () => shapeOf('PlanningEvent')(strategies(['none', input]));
      if (output === undefined) expect(read).toThrow();
      else expect(read()).toEqual(strategies(['none', output]));
    }
  });
});
