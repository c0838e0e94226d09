/** Frames that fit, to be bent: one event of every type, and the words the reference answers with. */

// biome-ignore lint/suspicious/noExplicitAny: frames are looked into freely
export type Frame = any;

const GENERIC = ['pre_action', 'pre_prompt'];
export const TYPED: Readonly<Record<string, Frame>> = {
  idle: { idle_duration_ms: 1, idle_reason: 'r' },
  intent_detection: { session_id: 's', prompt: 'where is main?', workspace: '/w' },
  context_perception: {
    session_id: 's',
    intent: 'locate',
    target: { location: { path: 'src', location_type: 'directory' } },
    context: { workspace: '/w' },
  },
  memory_recall: { session_id: 's', query: 'q', memory_type: 'any', max_results: 3, working_directory: '/w' },
  planning: { session_id: 's', task_description: 't', available_strategies: ['none'] },
  reasoning: { session_id: 's', reasoning_type: 're_act', problem_statement: 'p' },
  rate_limit: { session_id: 's', limit_type: 'llm_token_limit', retry_after_ms: 5, current_usage: 'u' },
  confirmation: { session_id: 's', confirmation_type: 'user_confirm', message: 'm' },
};
const TAXONOMY = ['handshake', 'query'];
const run = { run_id: 'sibling-run', session_id: 's', updated_at: 't' };
export const CONTRACTS: Readonly<Record<string, Frame>> = {
  run_lifecycle: { ...run, status: 'executing' },
  task_list: { ...run, tasks: [] },
  verification: { ...run, status: 'running' },
};
export const REPORTED = [
  'post_action',
  'post_response',
  'session_start',
  'error',
  'heartbeat',
  'success',
  'session_end',
];
export const BATCHED = [...GENERIC, ...REPORTED, ...Object.keys(CONTRACTS)];
export const ALL = [...GENERIC, ...Object.keys(TYPED), ...TAXONOMY, ...Object.keys(CONTRACTS), ...REPORTED];

export interface Sibling {
  readonly name: string;
  readonly sent: Frame;
  /** What the reference says: a result, an error, or nothing. */
  readonly said: Frame;
}

export function event(type: string, more: Frame = {}): Frame {
  const payload = TYPED[type] ?? CONTRACTS[type] ?? { tool_name: 'bash', arguments: { command: 'ls' } };
  return { event_type: type, session_id: 'sib', agent_id: 'a', timestamp: 't', depth: 0, payload, ...more };
}

export const error = (code: number) => ({ error: { code, message: 'm' } });
export const allow = { result: { decision: 'allow' } };
export const request = (method: string, params: Frame, id: Frame = 'q') => ({ jsonrpc: '2.0', id, method, params });
export const asked = (params: Frame) => request('ahp/event', params);
