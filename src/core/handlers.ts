/** The handler of every kind of command. */
import { actionHandlers } from './actions/execute.ts';
import { artifactHandlers } from './commands/artifact-changes.ts';
import { createAskedSession } from './commands/asked-session.ts';
import { branchHandlers } from './commands/branches.ts';
import { type DeclaredDeps, declaredHandlers } from './commands/declared.ts';
import { type RecordDeps, recordHandlers } from './commands/records.ts';
import { type SessionDeps, sessionHandlers } from './commands/sessions.ts';
import type { Handlers } from './context.ts';
import type { Replayer } from './replay/replay.ts';
import { createSubmit, type SubmitDeps } from './tasks/submit.ts';
import type { taskHandlers } from './tasks/task-commands.ts';

export interface HandlersDeps extends SubmitDeps, RecordDeps, DeclaredDeps, Omit<SessionDeps, 'vaults' | 'cancelTask'> {
  readonly vaults: DeclaredDeps['vaults'] & SessionDeps['vaults'];
  readonly tasks: ReturnType<typeof taskHandlers>;
  readonly replay: Replayer['handlers'];
}

export function createHandlers(deps: HandlersDeps): Handlers {
  const { cancelTask, ...tasks } = deps.tasks;
  const actions = actionHandlers(deps);
  const sessions = sessionHandlers({ ...deps, cancelTask });
  return {
    ...declaredHandlers(deps),
    ...sessions,
    'session.create': createAskedSession({
      ...deps,
      create: sessions['session.create'],
      close: sessions['session.close'],
      submit: createSubmit({ ...deps, admit: async () => {} }),
      propose: actions['action.propose'],
      report: tasks['task.report'],
    }),
    ...branchHandlers(deps),
    ...artifactHandlers(deps),
    ...tasks,
    ...actions,
    ...recordHandlers(deps),
    ...deps.replay,
  };
}
