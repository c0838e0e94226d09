/** The words the AHP has for each of its lists, written down a second time. */

export const RUN = ['created', 'planning', 'executing', 'verifying', 'completed', 'failed', 'cancelled'];
export const ITEM = ['pending', 'in_progress', 'completed', 'failed', 'skipped', 'cancelled'];
export const CHECK = ['pending', 'running', 'passed', 'failed', 'skipped', 'needs_review'];

export const INTENT = [
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

export const DOMAIN = [
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

export const MODALITY = ['text', 'code', 'structured_data', 'table', 'chart', 'image', 'audio', 'video', 'any'];

export const EVENT = [
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

export const STRATEGY = { open: ['none', 'step_by_step', 'tree_of_thoughts', 'graph_planning'], key: 'custom' };
export const REASONING = { open: ['chain_of_thought', 'tree_of_thoughts', 're_act', 'reflexion'], key: 'other' };

export const LIMIT = {
  open: ['llm_token_limit', 'llm_request_limit', 'api_request_limit', 'tool_execution_limit'],
  key: 'custom',
};

export const CONFIRMATION = { open: ['safety_confirm', 'user_confirm', 'cost_confirm'], key: 'custom' };
