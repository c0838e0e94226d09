/** An event as one line of a list: only what is shown and filtered by, so that a hundred thousand of them fit in memory. Pure. */
import { own } from '../../model/values/own.ts';
import { brief } from '../../model/values/visible-text.ts';

export interface LogEvent {
  readonly id: string;
  readonly event: string;
  readonly created_at: string;
  readonly sequence?: number;
  readonly resource?: { readonly object: string; readonly id: string };
  readonly session_id?: string | null;
  readonly task_id?: string | null;
  readonly workspace_id?: string | null;
  readonly actor?: string | null;
  readonly replayed?: boolean;
  /** Of an event of a replay: the event it repeats. */
  readonly replay?: { readonly original_event_id?: string | null };
  readonly payload: Readonly<Record<string, unknown>>;
  readonly ext?: Readonly<Record<string, unknown>>;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

export type Group = 'act' | 'decision' | 'approval' | 'message' | 'task' | 'proof' | 'system';

export interface EventRow {
  readonly id: string;
  readonly at: number;
  readonly event: string;
  readonly group: Group;
  /** The word in the first column. */
  readonly word: string;
  readonly tone: '' | 'good' | 'bad' | 'warn' | 'info';
  readonly text: string;
  readonly agent: string;
  readonly person: string;
  readonly door: string;
  readonly tool: string;
  readonly server: string;
  readonly verdict: string;
  readonly effect: string;
  readonly evidence: string;
  readonly rule: string;
  readonly session: string;
  readonly task: string;
  /** The call it belongs to, of events that begin, release or end one. */
  readonly call: string;
  readonly usd: number;
}

/** Rows that are added at the end. */
export interface GrowingRows {
  readonly rows: readonly EventRow[];
  /** Changes when rows were added or dropped at the beginning: views that filter or count read from the beginning again. */
  readonly epoch: number;
}

type Bag = Readonly<Record<string, unknown>>;

export const VERDICT_WORDS: Readonly<Record<string, string>> = {
  allow: 'allowed',
  block: 'blocked',
  escalate: 'asked',
  modify: 'changed',
  defer: 'deferred',
};
const VERDICT_TONES: Readonly<Record<string, EventRow['tone']>> = {
  allow: 'good',
  block: 'bad',
  escalate: 'warn',
  modify: 'info',
  defer: 'warn',
};

/** Members that repeat are kept once. */
const kept = new Map<string, string>();
function same(value: unknown): string {
  if (typeof value !== 'string' || value === '') return '';
  const known = kept.get(value);
  if (known !== undefined) return known;
  if (kept.size > 50_000) kept.clear();
  kept.set(value, value);
  return value;
}

export function bag(value: unknown): Bag {
  return typeof value === 'object' && value !== null ? (value as Bag) : {};
}

export function str(value: unknown): string {
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : '';
}

/** What the beginning of a call says and its end does not repeat. */
interface BegunCall {
  readonly caller: string;
  readonly server: string;
  readonly effect: string;
}
const NO_CALL: BegunCall = { caller: '', server: '', effect: '' };
/** A cache: calls that may still end. */
const begun = new Map<string, BegunCall>();

function callOf({ event, actor, payload }: LogEvent, call: string): BegunCall {
  if (call === '') return NO_CALL;
  if (event === 'tool.requested') {
    if (begun.size > 20_000) begun.clear();
    begun.set(call, { caller: same(actor), server: same(payload.server), effect: same(payload.effect) });
  }
  return begun.get(call) ?? NO_CALL;
}

/** Events name an agent as an actor (`agent:demo`) or by its name (`demo`); rows name each in one way. */
function agentOf(name: string): string {
  return name === '' || isAgent(name) ? name : `agent:${name}`;
}

export function toRow(event: LogEvent): EventRow {
  const { payload } = event;
  // Agents number their calls in each task from the beginning.
  const call = event.event.startsWith('tool.') ? same(`${event.task_id ?? ''} ${str(payload.tool_call_id)}`) : '';
  const began = callOf(event, call);
  const action = bag(payload.action);
  const decision = bag(payload.decision);
  const ask = bag(payload.ask);
  const about = bag(ask.action);
  const actor = bag(action.actor);
  const proposer = str(actor.id) || str(about.actor) || str(event.actor) || began.caller;
  const named = str(bag(payload.task).agent) || str(payload.agent);
  const agent = agentOf(named) || (isAgent(proposer) ? proposer : '');
  const said = words(event, { payload, action, decision, ask });
  return {
    id: event.id,
    at: Date.parse(event.created_at),
    event: same(event.event),
    group: said.group,
    word: same(brief(said.word, 40)),
    tone: said.tone,
    text: brief(said.text.slice(0, 600), 220),
    agent: same(agent),
    person: same(isAgent(proposer) ? str(payload.by) : str(payload.by) || proposer),
    door: same(str(actor.door) || str(about.door)),
    tool: same(str(action.tool) || str(payload.name) || str(about.tool)),
    server: same(str(action.server) || str(payload.server) || str(about.server) || began.server),
    verdict: same(str(decision.verdict)),
    effect: same(str(action.effect) || str(payload.effect) || str(about.effect) || began.effect),
    evidence: same(str(action.evidence) || str(payload.evidence)),
    rule: same(str(decision.rule_id) || str(payload.rule_id) || str(ask.rule_id)),
    session: same(event.session_id),
    task: same(event.task_id),
    call,
    usd: usdIn(payload) + usdIn(bag(action.cost)),
  };
}

/** Money in a report of usage, or in the cost of an act. */
export function usdIn({ usd, cost_usd, usd_micros }: Bag): number {
  const amount = (value: unknown) => (typeof value === 'number' && Number.isFinite(value) ? value : 0);
  return amount(usd) + amount(cost_usd) + amount(usd_micros) / 1e6;
}

function isAgent(id: string): boolean {
  return /^agent[:/]/.test(id);
}

interface Said {
  readonly group: Group;
  readonly word: string;
  readonly tone: EventRow['tone'];
  readonly text: string;
}

function words(
  event: LogEvent,
  { payload, action, decision, ask }: { payload: Bag; action: Bag; decision: Bag; ask: Bag },
): Said {
  const name = str(payload.name);
  switch (event.event) {
    case 'vendor.tollbridge.decided': {
      const verdict = str(decision.verdict);
      const what = [str(action.tool) || str(action.kind), str(action.target)].filter(Boolean).join(' ');
      return said(
        'decision',
        own(VERDICT_WORDS, verdict) ?? verdict,
        own(VERDICT_TONES, verdict) ?? '',
        `${what} · ${str(decision.reason)}`,
      );
    }
    case 'tool.requested':
      return said('act', 'call', 'info', `${name} ${argsText(payload.input)}`);
    case 'tool.completed':
      return said('act', 'done', 'good', `${name} ${resultText(payload)}`);
    case 'tool.failed':
      return said('act', 'failed', 'bad', `${name} ${str(payload.error) || str(payload.code)}`);
    case 'tool.approved':
      return said('approval', 'approved', 'good', `${name} by ${str(payload.by)} ${str(payload.reason)}`);
    case 'tool.denied':
      return said('approval', 'denied', 'bad', `${name} by ${str(payload.by)} ${str(payload.reason)}`);
    case 'tool.approval_required':
      return said('approval', WAITING, 'warn', str(payload.question));
    case 'vendor.tollbridge.ask_opened':
      return said('approval', 'question', 'warn', str(ask.question));
    case 'vendor.tollbridge.ask_closed':
      return said(
        'approval',
        str(payload.state),
        payload.state === 'approved' ? 'good' : 'bad',
        `by ${str(payload.by)} ${str(payload.reason)}`,
      );
    case 'agent.tool_use':
      return said('act', 'tool use', '', `${name} ${argsText(payload.input)}`);
    case 'agent.tool_result':
      return said('act', 'result', payload.status === 'error' ? 'bad' : '', `${name} ${resultText(payload)}`);
    case 'vendor.tollbridge.plan':
      return said('task', 'plan', '', planText(payload.entries));
    case 'span.completed':
      return said(
        'task',
        'model',
        '',
        [str(bag(payload.model).provider), str(bag(payload.model).model)].join(' ').trim(),
      );
    case 'session.message_appended':
      return said('message', 'transcript', '', `in the conversation, from the ${str(payload.role) || 'agent'}`);
    case 'vendor.tollbridge.alarm':
      return said('system', 'alarm', 'bad', str(payload.message));
    case 'user.message':
    case 'agent.message':
      return said('message', event.event === 'user.message' ? 'person' : 'message', '', messageText(payload.message));
    case 'vendor.tollbridge.message_delta':
      return said('message', 'text', '', str(payload.text));
    case 'agent.handoff':
      return said('task', 'handoff', 'info', `${str(payload.target_agent)} ${str(payload.status)}`);
    case 'receipt.issued':
      return said('proof', 'receipt', 'info', str(event.resource?.id));
    case 'vendor.tollbridge.policy_loaded':
      return said(
        'system',
        'rules',
        payload.outcome === 'loaded' ? 'info' : 'bad',
        `${str(payload.outcome)} · ${str(payload.rules)} rules · ${str(payload.version).slice(0, 19)}`,
      );
    case 'vendor.tollbridge.usage':
      return said('task', 'usage', '', usageText(payload));
    case 'artifact.created':
      return said('task', 'artifact', 'info', artifactName(payload.artifact));
  }
  if (event.event.startsWith('task.')) {
    const to = str(payload.to);
    const waits = to === 'AUTH_REQUIRED' || to === 'INPUT_REQUIRED';
    const tone = to === 'COMPLETED' ? 'good' : to === 'FAILED' ? 'bad' : waits ? 'warn' : '';
    const failure = bag(bag(payload.task).failure);
    const input = event.event === 'task.submitted' ? taskText(payload.task) : '';
    return said(
      'task',
      waits ? WAITING : event.event.slice(5).replace('_', ' '),
      tone,
      [input || str(payload.reason) || str(failure.message), str(event.task_id)].filter(Boolean).join(' · '),
    );
  }
  const group: Group = event.event.startsWith('receipt.')
    ? 'proof'
    : event.event.startsWith('vendor.')
      ? 'system'
      : 'task';
  // `resource_updated` is the word "resource" and, in the text, what became of it.
  const [word = '', ...rest] = event.event.replace('vendor.tollbridge.', '').split(/[._]/);
  const about =
    str(payload.message) ||
    str(payload.text) ||
    str(payload.reason) ||
    `${str(event.resource?.object)} ${str(event.resource?.id)}`;
  return said(group, word, '', [rest.join(' '), about].filter(Boolean).join(' · '));
}

/** A task or a call that goes on when a person has answered. */
const WAITING = 'waiting';

/** What a task was given to do. */
export function taskText(task: unknown): string {
  const input = bag(bag(task).input);
  return str(input.text) || messageText(input.message ?? input);
}

function said(group: Group, word: string, tone: EventRow['tone'], text: string): Said {
  return { group, word, tone, text };
}

/** How far a plan is, and the step that is being done. */
function planText(entries: unknown): string {
  const steps = Array.isArray(entries) ? entries.map(bag) : [];
  const done = steps.filter(({ status }) => status === 'completed').length;
  const now = steps.find(({ status }) => status === 'in_progress');
  return [`${done} of ${steps.length} steps done`, str(now?.content)].filter(Boolean).join(' · ');
}

function argsText(input: unknown): string {
  const text = JSON.stringify(input ?? {}).slice(0, 300);
  return text === '{}' ? '' : text;
}

function resultText({ output, status }: Bag): string {
  if (output === undefined || output === null) return str(status);
  return typeof output === 'string' ? output.slice(0, 300) : JSON.stringify(output).slice(0, 300);
}

export function messageText(message: unknown): string {
  const parts = bag(message).parts;
  if (!Array.isArray(parts)) return '';
  return parts
    .map((part) => str(bag(part).text))
    .filter(Boolean)
    .join('\n');
}

/** The name that its maker gave it, or its id. */
export function artifactName(artifact: unknown): string {
  const { name, id, metadata } = bag(artifact);
  return str(name) || str(bag(metadata).name) || str(id);
}

/** Tokens and money in words; other numbers by their names. */
export function usageText(payload: Bag): string {
  const {
    input_tokens: input,
    output_tokens: output,
    usd: _,
    cost_usd: __,
    usd_micros: ___,
    ...others
  } = {
    ...payload,
    ...bag(payload.tokens),
  } as Bag;
  const usd = usdIn(payload);
  return [
    typeof input === 'number' && `${input.toLocaleString('en')} tokens in`,
    typeof output === 'number' && `${output.toLocaleString('en')} tokens out`,
    usd > 0 && `${usd.toFixed(4)} USD`,
    ...Object.entries(others).map(
      ([name, value]) => typeof value === 'number' && `${name.replaceAll('_', ' ')} ${value.toLocaleString('en')}`,
    ),
  ]
    .filter(Boolean)
    .join(' · ');
}

/** The number in an event's id. */
export function positionOf(id: string): number {
  return Number(id.replace('evt_', ''));
}

export function cursorAt(position: number): string {
  return `evt_${String(Math.max(0, position)).padStart(16, '0')}`;
}
