/** Promises of Agent Harness v1 that the suite `runs` has to see broken. */
import type { Mutant } from './mutant.ts';

const runs = (file: string, rows: readonly (readonly [string, string, string])[]): Mutant[] =>
  rows.map(([promise, find, replace]) => ({
    promise: `runs ${promise}`,
    file,
    find,
    replace,
    by: { suite: 'runs', only: '' },
  }));

export const runsMutants: readonly Mutant[] = [
  ...runs('adapters/runs/server/operations/create.ts', [
    [
      'idempotency: another request under the same key is refused',
      "if (runMetadataOf(task)?.request !== digest) throw new RunsRefusal('IDEMPOTENCY_KEY_REUSED');",
      '',
    ],
    [
      'idempotency: a key is needed',
      "if (!key) throw new RunsRefusal('IDEMPOTENCY_KEY_REQUIRED');",
      "if (!key) return 'none';",
    ],
  ]),
  ...runs('adapters/runs/server/operations/run-actions.ts', [
    [
      'lifecycle: a run that is over is not canceled',
      'move((status) => !isOver(status), cancel)',
      'move(() => true, cancel)',
    ],
    [
      'lifecycle: only a failed run is tried again',
      "move((status) => status === 'failed', retry)",
      'move(() => true, retry)',
    ],
    [
      'lifecycle: only a stalled run goes on',
      "move((status) => status === 'stalled', resume)",
      'move(() => true, resume)',
    ],
    ['lifecycle: attempts are counted', 'attempt: before.attempt + 1', 'attempt: before.attempt'],
    [
      'lifecycle: a retry starts work',
      'parent_task_id: current.id,',
      "parent_task_id: current.parent_task_id ?? current.id, persona_id: 'persona_absent',",
    ],
  ]),
  ...runs('adapters/runs/server/operations/signal.ts', [
    ['approvals: a rejected act fails the run', ", failure: { code: REJECTED, message: reason ?? 'rejected' } }", ' }'],
    [
      'approvals: approve is a yes',
      '{ approved: true, ...changedIn(payload),',
      '{ approved: false, ...changedIn(payload),',
    ],
    [
      'approvals: an approval does not answer a question for a value',
      "const kind = action === 'approve' ? 'approval' : 'input';",
      "const kind = action === 'approve' ? standing.questions[0]?.kind : 'input';",
    ],
    [
      'idempotency: another signal under the same key is refused',
      "if (await bridge.bound('runs', names.scope, names.key)) throw new RunsRefusal('IDEMPOTENCY_KEY_REUSED', runId);",
      '',
    ],
    [
      'approvals: a run that waits for nothing takes no signal',
      "if (!question) throw new RunsRefusal('RUN_NOT_AWAITING_INPUT');",
      'if (!question) return;',
    ],
  ]),
];
