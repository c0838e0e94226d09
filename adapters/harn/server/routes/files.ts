/**
 * Files of local workspaces. Each access is a task of its own, so that policy decides it, approvers can be asked about it, and
 * a receipt accounts for it.
 */
import {
  type ActResult,
  FAULT_KINDS,
  Fault,
  type FaultKind,
  type JsonObject,
  type Row,
  type Workspace,
} from '../../../../src/index.ts';
import type { WireShape } from '../../revisions/schemas.ts';
import type { Call, RouteContext, Routes } from '../call.ts';
import { FILE_SERVER, localRoot, READ_FILE, WRITE_FILE } from '../workspace-files.ts';

/** How long a request waits for an approval. */
const TIMEOUT_MS = 30_000;

export function fileRoutes({
  bridge,
  settings,
  deps,
}: RouteContext): Pick<Routes, 'readWorkspaceFile' | 'writeWorkspaceFile'> {
  async function through(call: Call, tool: string, path: string, more: JsonObject = {}): Promise<JsonObject> {
    const { actor, once } = call;
    const workspace = await bridge.view<Workspace & Row>(actor, 'workspace', call.params.workspace_id!);
    const root = localRoot(workspace.root, settings.files);
    if (!root) throw new Fault('not_implemented', 'files of this workspace are not served here');
    const { resource: session } = await bridge.submit({
      kind: 'session.create',
      actor,
      idempotency: { key: 'files', target: `workspaces/${workspace.id}/files` },
      body: { workspace_id: workspace.id, metadata: { purpose: 'files' } },
    });
    const { resource: task } = await bridge.submit({
      kind: 'task.submit',
      actor,
      ...once,
      body: { session_id: session.id, agent: 'none', input: { operation: tool, path } },
    });
    const action = act(call, task.id, { tool, target: path || '.', arguments: { root, path, ...more } });
    const late = new Fault(
      'deadline_exceeded',
      'this waits for an approval; a request with the same idempotency key returns its result',
      {
        details: { task_id: task.id },
      },
    );
    return outputOf(await inTime(action, late));
  }

  /** Continues when the request is no longer waited for: a late approval still finds its call. */
  async function act(
    { actor }: Call,
    task_id: string,
    action: { tool: string; target: string; arguments: JsonObject },
  ) {
    const proposed = { kind: 'tool' as const, tool_call_id: `${task_id}.file`, server: FILE_SERVER, ...action };
    const { act: done, repeated } = await bridge.submit({
      kind: 'tool.call',
      actor,
      body: { task_id, action: proposed },
    });
    const ok = done?.kind === 'done' && done.result.status === 'ok';
    const why = done?.kind === 'refused' ? done.reason : done?.result.error;
    const end = ok
      ? { state: 'COMPLETED' as const, not_reported: [] }
      : {
          state: 'FAILED' as const,
          failure: { code: 'file_access_failed', message: why ?? 'failed' },
          not_reported: [],
        };
    if (!repeated) await bridge.submit({ kind: 'task.report', actor, body: { task_id, end } }).catch(unlessEnded);
    return done;
  }

  function inTime<T>(work: Promise<T>, late: Fault): Promise<T> {
    work.catch((cause) => deps.log.warn({ err: cause }, 'a file access failed'));
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(late), TIMEOUT_MS).unref();
      work.then(resolve, reject).finally(() => clearTimeout(timer));
    });
  }

  return {
    readWorkspaceFile: async (call) => {
      const path = tidy(call.query.path);
      const output = await through(call, READ_FILE, path);
      const about = { workspace_id: call.params.workspace_id!, path: path || '.' };
      const body = output.entries
        ? { object: 'file_listing', ...about, entries: output.entries }
        : { object: 'file', ...about, encoding: 'utf-8', ...output };
      return { body };
    },
    writeWorkspaceFile: async (call) => {
      const { content, path: named } = call.body as WireShape<'WriteWorkspaceFileRequest'>;
      const path = tidy(named ?? call.query.path);
      if (!path) throw new Fault('invalid_request', 'which file?', { param: 'path' });
      const { bytes } = await through(call, WRITE_FILE, path, { content });
      return { body: { object: 'file', workspace_id: call.params.workspace_id!, path, encoding: 'utf-8', bytes } };
    },
  };
}

function tidy(path: string | undefined): string {
  return path === undefined || path === '.' ? '' : path.replace(/^\.\//, '');
}

function outputOf(done: ActResult | undefined): JsonObject {
  if (done?.kind === 'refused') {
    throw new Fault('policy_violation', done.reason, { details: { rule_id: done.decision.rule_id ?? null } });
  }
  if (done?.result.status === 'ok') return done.result.output as JsonObject;
  const { code = 'internal', error = 'the file could not be reached' } = done?.result ?? {};
  const kind = (FAULT_KINDS as readonly string[]).includes(code) ? (code as FaultKind) : 'internal';
  throw new Fault(kind, error, { param: 'path' });
}

function unlessEnded(thrown: unknown): void {
  if (!(thrown instanceof Fault) || thrown.kind !== 'conflict') throw thrown;
}
