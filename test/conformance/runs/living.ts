/** A run's life: its states, its events, what may follow what, and how it is answered. */
import { among, equal, truth } from '../harn/harness/expect.ts';
import { type Body, checksOf, isUuid, type RunsCheck, refused, type Target } from './target.ts';

const UNKNOWN = 'run_01J0000000000000000000NONE';
const valueIn = (events: readonly Body[], type: string): Body => {
  const found = events.find((event) => event.type === type);
  truth(found, `there is no ${type}`);
  return found.payload.value;
};

async function conflict(at: Target, id: string, move: string): Promise<void> {
  refused(await at.call('POST', `/v1/runs/${id}/${move}`), 409, 'conflict', 'RUN_INVALID_STATE_TRANSITION');
}

const signal = (at: Target, id: string, body: unknown) => at.call('POST', `/v1/runs/${id}/signal`, { body });

function summary(value: Body, what: string): void {
  equal(Object.keys(value).toSorted(), ['highlights', 'preview', 'schema_version', 'stats', 'truncated'], what);
  truth(value.preview === null || [...value.preview].length <= 240, `${what}: a preview has at most 240 characters`);
  truth(value.highlights.length <= 10, `${what}: at most ten highlights`);
  for (const item of value.highlights) {
    equal(Object.keys(item), ['key', 'value', 'redacted'], `${what}: a highlight`);
    const types = [typeof item.key, typeof item.value, typeof item.redacted];
    equal(types, ['string', 'string', 'boolean'], `${what}: the types of a highlight`);
  }
  const stats = ['bytes_after_redaction', 'bytes_before_redaction', 'fields_redacted', 'fields_total'];
  equal(Object.keys(value.stats).toSorted(), stats, `${what}: stats`);
}

export const living: readonly RunsCheck[] = [
  ...checksOf(
    'a run that is not there',
    Object.fromEntries(
      [
        ['GET', ''],
        ['POST', '/cancel'],
        ['POST', '/retry'],
        ['POST', '/resume'],
        ['POST', '/signal'],
        ['GET', '/events'],
        ['GET', '/events/stream'],
      ].map(([method = '', path]) => [
        `${method} /v1/runs/{id}${path}`,
        async (at: Target) => {
          const asking = path === '/signal' ? { body: { action: 'approve' } } : {};
          refused(await at.call(method, `/v1/runs/${UNKNOWN}${path}`, asking), 404, 'not_found', 'RUN_NOT_FOUND');
        },
      ]),
    ),
  ),
  ...checksOf('what a run does', {
    async 'a failing step says that it fails the run, before the run has failed'(at) {
      const id = await at.run('fail');
      await at.reaches(id, 'failed');
      const events = await at.events(id);
      const steps = events.filter(({ type }) => type === 'step.done').map(({ payload }) => payload.value);
      equal(steps.at(-1)?.outcome, 'fail_run', 'outcome of the last step');
      truth(typeof steps.at(-1)?.reason_code === 'string', 'the step says why');
      const order = events.map(({ type }) => type);
      truth(order.lastIndexOf('step.done') < order.indexOf('run.worker.failed'), 'the step comes first');
    },
    async 'a planner takes the first step where that is required, and a worker where planning is skipped'(at) {
      for (const [routing_hint, role] of [
        ['require_planning', 'planner'],
        ['skip_planning', 'worker'],
      ]) {
        const { body } = await at.create({ user_query: at.word('hello') }, { routing_hint });
        await at.reaches(body.id, 'succeeded');
        const decision = valueIn(await at.events(body.id), 'run.coordination.decision');
        equal([decision.decision_type, decision.role], ['continue', role], `the first decision after ${routing_hint}`);
      }
    },
    async 'a rejected run is stopped by a judge'(at) {
      const id = await at.run('approve');
      await at.seen(id, 'run.awaiting_input');
      equal((await signal(at, id, { action: 'reject' })).status, 200, 'status');
      await at.reaches(id, 'failed');
      const decisions = (await at.events(id)).filter(({ type }) => type === 'run.coordination.decision');
      const last = decisions.at(-1)?.payload.value;
      equal([last?.decision_type, last?.role], ['stop', 'judge'], 'the last decision');
    },
    async 'an approval with other arguments runs those, and one whose arguments are none is refused'(at) {
      const id = await at.run('approve');
      await at.seen(id, 'run.awaiting_input');
      const bad = await signal(at, id, { action: 'approve', payload: { arguments: 'x' } });
      refused(bad, 400, 'bad_request', 'SIGNAL_PAYLOAD_INVALID');
      const asked = JSON.parse(
        valueIn(await at.events(id), 'run.awaiting_input').tool_input_summary.preview ?? '{}',
      ) as Body;
      const texts = Object.keys(asked).filter((name) => typeof asked[name] === 'string');
      const changed = Object.fromEntries(
        (texts.length > 0 ? texts : ['note']).map((name) => [name, `another ${name}`]),
      );
      const payload = { arguments: { ...asked, ...changed } };
      equal((await signal(at, id, { action: 'approve', payload })).status, 200, 'status');
      await at.reaches(id, 'succeeded');
      const invoked = valueIn(await at.events(id), 'run.tool.invoked');
      equal(invoked.tool_input_summary.preview, JSON.stringify(payload.arguments), 'what ran');
    },
    async 'without a key anyone hears how the dependencies are, and what can be asked'(at) {
      const deps = await at.call('GET', '/health/deps', { as: null });
      equal([deps.status, deps.body.status], [200, 'ok'], 'health');
      truth(
        Object.values(deps.body.dependencies).every((word) => word === 'ok'),
        'each dependency is ok',
      );
      const document = await at.call('GET', '/openapi.json', { as: null });
      equal(document.status, 200, 'status of the document');
      truth(document.body.paths['/v1/runs']?.post, 'the document has POST /v1/runs');
    },
  }),
  ...checksOf('a run', {
    async "of another customer's is not there"(at) {
      const id = await at.run('hello');
      refused(await at.call('GET', `/v1/runs/${id}`, { as: at.key('other') }), 404, 'not_found', 'RUN_NOT_FOUND');
    },
    async 'succeeds, and tells so'(at) {
      const id = await at.run('hello');
      await at.reaches(id, 'succeeded');
      const events = await at.events(id);
      equal(
        events.map(({ seq }) => seq),
        events.map((_, index) => index + 1),
        'numbers',
      );
      equal(
        [events[0].type, events[1].type, events.at(-1).type],
        ['run.created', 'run.worker.started', 'run.worker.succeeded'],
        'types',
      );
      equal(events[0].payload.redacted, true, 'run.created is redacted');
      for (const member of ['input', 'metadata', 'attachment_refs', 'sensitivity_tags']) {
        truth(!(member in events[0].payload.value), `run.created does not hold ${member}`);
      }
      truth(isUuid(events[0].payload.value.request_id), 'run.created names its request');
      const { request_id: _, ...started } = events[1].payload.value;
      equal(started, { from_status: 'queued', to_status: 'running', reason_code: null }, 'run.worker.started');
      const { request_id: __, ...ended } = events.at(-1).payload.value;
      equal(ended, { from_status: 'running', to_status: 'succeeded', reason_code: null }, 'run.worker.succeeded');
      for (const event of events) equal(Object.keys(event), ['seq', 'type', 'timestamp', 'payload'], 'an event');
    },
    async 'tells what its steps say, in pieces and whole'(at) {
      const id = await at.run('hello');
      await at.reaches(id, 'succeeded');
      const events = await at.events(id);
      const done = valueIn(events, 'step.done');
      equal(done.outcome, 'succeeded', 'outcome');
      const pieces = events.flatMap(({ type, payload: { value } }) =>
        type === 'step.progress' && value.kind === 'content_delta' && value.task_id === done.task_id
          ? [value.content_delta]
          : [],
      );
      if (pieces.length > 0) equal(pieces.join(''), done.content, 'the pieces together');
      truth(typeof done.content === 'string' && done.content !== '', 'content is a text');
    },
    async 'is told to have ended only once'(at) {
      const id = await at.run('hello');
      await at.reaches(id, 'succeeded');
      for (const move of ['cancel', 'retry', 'resume']) await conflict(at, id, move);
    },
    async 'is cancelled while it works'(at) {
      const id = await at.run('long');
      await at.seen(id, 'run.worker.started');
      const { status, body } = await at.call('POST', `/v1/runs/${id}/cancel`);
      equal([status, body.id, body.status], [200, id, 'cancelled'], 'the answer');
      const { request_id: _, ...value } = valueIn(await at.events(id), 'run.cancelled');
      equal(Object.keys(value), ['from_status', 'to_status'], 'run.cancelled');
      equal(value.to_status, 'cancelled', 'to_status');
      await conflict(at, id, 'cancel');
      await conflict(at, id, 'retry');
    },
    async 'that works cannot be retried or resumed'(at) {
      const id = await at.run('long');
      await at.seen(id, 'run.worker.started');
      await conflict(at, id, 'retry');
      await conflict(at, id, 'resume');
      await at.call('POST', `/v1/runs/${id}/cancel`);
    },
    async 'fails with a reason'(at) {
      const id = await at.run('fail');
      await at.reaches(id, 'failed');
      const value = valueIn(await at.events(id), 'run.worker.failed');
      equal([value.from_status, value.to_status], ['running', 'failed'], 'run.worker.failed');
      truth(typeof value.reason_code === 'string', 'it has a reason_code');
      await conflict(at, id, 'cancel');
      await conflict(at, id, 'resume');
    },
    async 'that failed is tried again under its own id, and its numbers go on'(at) {
      const id = await at.run('fail');
      await at.reaches(id, 'failed');
      const before = (await at.events(id)).length;
      const { status, body } = await at.call('POST', `/v1/runs/${id}/retry`);
      equal([status, body.id], [200, id], 'the answer');
      among(body.status, ['queued', 'running', 'succeeded', 'failed'], 'status');
      const events = await at.events(id);
      equal([events[before].seq, events[before].type], [before + 1, 'run.worker.retry_scheduled'], 'the next event');
      const { from_status, to_status } = events[before].payload.value;
      equal([from_status, to_status], ['failed', 'queued'], 'run.worker.retry_scheduled');
    },
    async 'whose worker falls silent is stalled, and goes on when told to'(at) {
      const id = await at.run('silent');
      await at.reaches(id, 'stalled');
      const stalled = valueIn(await at.events(id), 'run.worker.stalled');
      equal([stalled.from_status, stalled.to_status], ['running', 'stalled'], 'run.worker.stalled');
      await conflict(at, id, 'retry');
      const { status, body } = await at.call('POST', `/v1/runs/${id}/resume`);
      equal([status, body.id], [200, id], 'the answer');
      among(body.status, ['running', 'succeeded'], 'status');
      await at.reaches(id, 'succeeded');
      const { request_id: _, ...resumed } = valueIn(await at.events(id), 'run.resumed');
      equal(resumed, { from_status: 'stalled', to_status: 'running' }, 'run.resumed');
    },
    async 'that is stalled can be cancelled'(at) {
      const id = await at.run('silent');
      await at.reaches(id, 'stalled');
      equal((await at.call('POST', `/v1/runs/${id}/cancel`)).body.status, 'cancelled', 'status');
    },
    async 'tells of its tools, and shows of them what may be shown'(at) {
      const id = await at.run('call');
      await at.reaches(id, 'succeeded');
      const events = await at.events(id);
      const invoked = valueIn(events, 'run.tool.invoked');
      const members = [
        'duration_ms',
        'policy_reason_code',
        'tool_call_id',
        'tool_input_summary',
        'tool_name',
        'tool_outcome',
        'tool_output_summary',
      ];
      const named = Object.keys(invoked).filter((name) => name !== 'tollbridge');
      equal(named.toSorted(), members, 'run.tool.invoked');
      equal([invoked.tool_outcome, invoked.policy_reason_code], ['succeeded', null], 'outcome');
      truth(invoked.duration_ms >= 0, 'it took some time');
      summary(invoked.tool_input_summary, 'input');
      summary(invoked.tool_output_summary, 'output');
      const kinds = events.flatMap(({ type, payload: { value } }) =>
        type === 'step.progress' && value.tool_call_id === invoked.tool_call_id ? [value.kind] : [],
      );
      equal(kinds, ['tool_call_start', 'tool_call_done'], 'progress of the call');
    },
    async 'goes on when policy forbids a tool'(at) {
      const id = await at.run('blocked');
      await at.reaches(id, 'succeeded');
      const invoked = valueIn(await at.events(id), 'run.tool.invoked');
      equal(invoked.tool_outcome, 'policy_denied', 'outcome');
      truth(typeof invoked.policy_reason_code === 'string', 'it says by which rule');
    },
  }),
  ...checksOf('a signal', {
    async 'is not wanted by a run that does not wait'(at) {
      const id = await at.run('hello');
      await at.reaches(id, 'succeeded');
      for (const body of [{ action: 'approve' }, { action: 'reject' }, { action: 'submit_input', payload: 1 }]) {
        refused(await signal(at, id, body), 409, 'conflict', 'RUN_NOT_AWAITING_INPUT');
      }
    },
    ...Object.fromEntries(
      [
        ['without an action', {}],
        ['with an unknown action', { action: 'shrug' }],
        ['that is a list', []],
        ['that is no JSON', '{'],
        ['with a key that is a number', { action: 'approve', idempotency_key: 1 }],
      ].map(([what, body]) => [
        String(what),
        async (at: Target) =>
          refused(await signal(at, await at.run('hello'), body), 400, 'bad_request', 'SIGNAL_PAYLOAD_INVALID'),
      ]),
    ),
    async 'of the wrong kind answers nothing: the question stays open'(at) {
      for (const [word, body] of [
        ['input', { action: 'approve' }],
        ['approve', { action: 'submit_input', payload: 'yes' }],
      ] as const) {
        const id = await at.run(word);
        await at.seen(id, 'run.awaiting_input');
        refused(await signal(at, id, body), 409, 'conflict', 'RUN_NOT_AWAITING_INPUT');
        equal((await at.call('GET', `/v1/runs/${id}`)).body.status, 'running', `${word}: status`);
        await at.call('POST', `/v1/runs/${id}/cancel`);
      }
    },
    async 'is waited for: the run says for what, and is still running'(at) {
      const id = await at.run('approve');
      const events = await at.seen(id, 'run.awaiting_input');
      const value = valueIn(events, 'run.awaiting_input');
      equal(value.input_kind, 'approval', 'input_kind');
      truth(typeof value.reason_code === 'string' && isUuid(value.request_id), 'reason_code and request_id');
      const { body } = await at.call('GET', `/v1/runs/${id}`);
      equal([body.status, body.awaiting_input?.input_kind], ['running', 'approval'], 'the run');
      const decision = valueIn(events, 'run.coordination.decision');
      equal(
        [decision.decision_type, Object.keys(decision.judge_decision)],
        ['await_input', ['decision', 'reason']],
        'the decision',
      );
      among(decision.role, ['planner', 'worker', 'judge'], 'role');
    },
    async 'approve lets it go on'(at) {
      const id = await at.run('approve');
      await at.seen(id, 'run.awaiting_input');
      const { status, body } = await signal(at, id, { action: 'approve' });
      equal([status, body.ok, Object.keys(body).toSorted()], [200, true, ['ok', 'request_id']], 'the answer');
      await at.reaches(id, 'succeeded');
      equal(valueIn(await at.events(id), 'run.signal_applied').action, 'approve', 'run.signal_applied');
    },
    async 'reject fails the run'(at) {
      const id = await at.run('approve');
      await at.seen(id, 'run.awaiting_input');
      equal((await signal(at, id, { action: 'reject', payload: { reason: 'no' } })).status, 200, 'status');
      await at.reaches(id, 'failed');
      const events = await at.events(id);
      equal(valueIn(events, 'run.signal_applied').action, 'reject', 'run.signal_applied');
      valueIn(events, 'run.worker.failed');
    },
    async 'submit_input hands over a value'(at) {
      const id = await at.run('input');
      const value = valueIn(await at.seen(id, 'run.awaiting_input'), 'run.awaiting_input');
      among(value.input_kind, ['payload', undefined], 'input_kind');
      equal((await signal(at, id, { action: 'submit_input', payload: 'blue' })).status, 200, 'status');
      await at.reaches(id, 'succeeded');
      equal(valueIn(await at.events(id), 'run.input_received').action, 'submit_input', 'run.input_received');
    },
    async 'with a key is applied once'(at) {
      const id = await at.run('approve');
      await at.seen(id, 'run.awaiting_input');
      const body = { action: 'approve', idempotency_key: 'once' };
      equal((await signal(at, id, body)).status, 200, 'status');
      equal((await signal(at, id, body)).status, 200, 'status of the repeat');
      await at.reaches(id, 'succeeded');
      equal(
        (await at.events(id)).filter(({ type }) => type === 'run.signal_applied').length,
        1,
        'times it was applied',
      );
      refused(
        await signal(at, id, { action: 'reject', idempotency_key: 'once' }),
        409,
        'conflict',
        'IDEMPOTENCY_KEY_REUSED',
      );
    },
    async 'that cannot be taken is the fault of the server'(at) {
      const id = await at.run('approve');
      await at.seen(id, 'run.awaiting_input');
      const answer = await at.broken(() => signal(at, id, { action: 'approve' }));
      refused(answer, 500, 'internal_error', 'SIGNAL_SERVICE_UNAVAILABLE');
      await at.call('POST', `/v1/runs/${id}/cancel`);
    },
  }),
];
