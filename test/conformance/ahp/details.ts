/** Cases nobody recorded, one level further in: the members of members, and what the reference makes of them. */
import { allow, asked, CONTRACTS, error, event, type Frame, request, type Sibling } from './frames.ts';

/** Members of members: what is optional may be null, what has a default may not, and numbers have ranges. */
export function* details(): Generator<Sibling> {
  const contexts: readonly (readonly [Frame, boolean])[] = [
    [null, true],
    [{}, true],
    [{ current_task: null, recent_facts: null, memory_summary: null, session_stats: null, capabilities: null }, true],
    [{ current_task: 'ü'.repeat(500), capabilities: { memory_search: { type: 'http', url: 'x' } }, beside: 1 }, true],
    [{ recent_facts: [{ content: '', source: '', confidence: -3 }] }, true],
    [{ recent_facts: [{ content: 'c', source: 's' }] }, false],
    [{ recent_facts: [{ content: 'c', source: 's', confidence: '1' }] }, false],
    [{ recent_facts: {} }, false],
    [{ memory_summary: { memory_type: 'm', total_items: 0, recent_topics: [] } }, true],
    [{ memory_summary: { memory_type: 'm', total_items: -1, recent_topics: [] } }, false],
    [{ memory_summary: { memory_type: 'm', total_items: 0, recent_topics: [1] } }, false],
    [{ session_stats: stats() }, true],
    [{ session_stats: stats({ total_tokens: 2147483647 }) }, true],
    [{ session_stats: stats({ total_tokens: -2147483648 }) }, true],
    [{ session_stats: stats({ total_tokens: 2147483648 }) }, false],
    [{ session_stats: stats({ total_tokens: 3000000000 }) }, false],
    [{ session_stats: stats({ duration_ms: 9007199254740991 }) }, true],
    [{ session_stats: stats({ duration_ms: -1 }) }, false],
    [{ session_stats: stats({ error_count: undefined }) }, false],
    [{ session_stats: {} }, false],
    [{ capabilities: [] }, false],
    [{ current_task: 1 }, false],
    ['x', false],
    [1, false],
  ];
  for (const [context, fits] of contexts) {
    const name = `context ${JSON.stringify(context).slice(0, 60)}`;
    yield { name, sent: asked(event('pre_action', { context })), said: fits ? allow : error(-32602) };
  }
  for (const metadata of [null, {}, { a: { b: [1, null] } }]) {
    const sent = asked(event('pre_prompt', { metadata, payload: { prompt: 'p' } }));
    yield { name: `metadata ${JSON.stringify(metadata)}`, sent, said: allow };
  }
  for (const metadata of ['x', 1, true, []]) {
    const sent = asked(event('pre_action', { metadata }));
    yield { name: `metadata ${JSON.stringify(metadata)}`, sent, said: error(-32602) };
  }
  for (const timestamp of ['', 'yesterday', '2026-11-16T00:00:43.256065957+00:00', '2026-02-30T99:99:99Z']) {
    yield { name: `timestamp "${timestamp}"`, sent: asked(event('pre_action', { timestamp })), said: allow };
  }
  for (const depth of [4294967296, 1e21, -0.5, '0', null]) {
    yield { name: `depth ${depth}`, sent: asked(event('pre_action', { depth })), said: error(-32602) };
  }
  for (const payload of [null, 0, '', [], {}, { tool_name: null }, { tool: 1, args: [] }, ['bash']]) {
    const sent = asked(event('pre_prompt', { payload }));
    yield { name: `pre_prompt of ${JSON.stringify(payload)}`, sent, said: allow };
  }
  yield* contractDetails();
}

const stats = (more: Frame = {}) => ({ total_actions: 1, total_tokens: 1, duration_ms: 1, error_count: 0, ...more });

/** In a batch, where a contract that does not fit is an error and one that does is an entry. */
function* contractDetails(): Generator<Sibling> {
  const artifact = { id: 'a', size_bytes: 3, sha256: 'not one', kind: null };
  const item = { id: '1', title: 't', status: 'pending' };
  const check = { id: 'c', subject: 's', status: 'passed' };
  const payloads: readonly (readonly [string, Frame, boolean])[] = [
    ['run_lifecycle', { prompt: null, result_summary: null, error: null, started_at: null, metadata: null }, true],
    ['run_lifecycle', { status: 'canceled' }, false],
    ['run_lifecycle', { status: 'Executing' }, false],
    ['run_lifecycle', { status: null }, false],
    ['run_lifecycle', { status: { planning: null } }, true],
    ['run_lifecycle', { run_id: 7 }, false],
    ['run_lifecycle', { updated_at: null }, false],
    ['run_lifecycle', { updated_at: '' }, true],
    ['run_lifecycle', { prompt: ['p'] }, false],
    ['run_lifecycle', { metadata: [] }, false],
    ['task_list', { tasks: [item, { ...item, depends_on: ['1'], evidence: [], artifacts: [artifact] }] }, true],
    ['task_list', { tasks: [{ ...item, depends_on: null }] }, false],
    ['task_list', { tasks: [{ ...item, evidence: null }] }, false],
    ['task_list', { tasks: [{ ...item, artifacts: null }] }, false],
    ['task_list', { tasks: [{ ...item, status: 'running' }] }, false],
    ['task_list', { tasks: [{ ...item, title: undefined }] }, false],
    ['task_list', { tasks: [{ ...item, evidence: [{ kind: 'k', summary: 's', artifact: null }] }] }, true],
    ['task_list', { tasks: [{ ...item, evidence: [{ kind: 'k' }] }] }, false],
    ['task_list', { tasks: [item, item] }, true],
    ['task_list', { tasks: null }, false],
    ['task_list', { tasks: {} }, false],
    ['verification', { checks: [check], residual_risks: ['r'] }, true],
    ['verification', { checks: [{ ...check, artifacts: [{ ...artifact, size_bytes: -1 }] }] }, false],
    ['verification', { checks: [{ ...check, artifacts: [{ ...artifact, size_bytes: 1.5 }] }] }, false],
    ['verification', { checks: [{ ...check, artifacts: [{ kind: 'log' }] }] }, false],
    ['verification', { checks: [{ ...check, command: null, message: null, metadata: null }] }, true],
    ['verification', { checks: null }, false],
    ['verification', { residual_risks: null }, false],
    ['verification', { residual_risks: [1] }, false],
    ['verification', { status: 'ok' }, false],
    ['verification', { artifacts: 'unknown members are ignored' }, true],
  ];
  for (const [type, more, fits] of payloads) {
    const events = [event(type, { payload: { ...CONTRACTS[type], ...more } })];
    const name = `${type} with ${JSON.stringify(more).slice(0, 70)}`;
    const said = fits ? { result: { decisions: [{ decision: 'allow' }] } } : error(-32602);
    yield { name, sent: request('ahp/batch', { events }), said };
  }
}
