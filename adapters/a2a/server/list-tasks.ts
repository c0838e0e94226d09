/** A caller's tasks with this agent, newest status first, in pages. */
import { type ListTasksRequest, type ListTasksResponse, TaskState } from '@a2a-js/sdk';
import type { Actor, Bridge, Task as OurTask, Row } from '../../../src/index.ts';
import { toWireState } from '../translate.ts';
import type { Contexts } from './contexts.ts';
import { Refusal } from './refusal.ts';
import type { TaskReader } from './task-reader.ts';

export interface ListDeps {
  readonly bridge: Bridge;
  readonly reader: TaskReader;
  readonly contexts: Contexts;
}

const PAGE = 50;
const BATCH = 200;

export async function listTasks(deps: ListDeps, actor: Actor, params: ListTasksRequest): Promise<ListTasksResponse> {
  const { reader } = deps;
  const pageSize = params.pageSize ?? PAGE;
  const all: (OurTask & Row)[] = [];
  for (const task of await mine(deps, actor, params.contextId))
    if (await wanted(deps, actor, task, params)) all.push(task);
  all.sort(newestFirst);
  const from = params.pageToken ? indexAfter(all, readToken(params.pageToken)) : 0;
  const page = all.slice(from, from + pageSize);
  const more = from + pageSize < all.length;
  const tasks = [];
  for (const task of page) {
    const owned = { task, contextId: reader.contextOf(task) };
    tasks.push(await reader.snapshot(actor, owned, params.historyLength ?? 0, params.includeArtifacts === true));
  }
  return { tasks, pageSize, totalSize: all.length, nextPageToken: more ? tokenOf(page.at(-1) as OurTask) : '' };
}

async function mine(
  { bridge, reader, contexts }: ListDeps,
  actor: Actor,
  contextId: string,
): Promise<(OurTask & Row)[]> {
  const session = contextId ? await contexts.find(actor, contextId) : undefined;
  if (contextId && !session) return [];
  const found: (OurTask & Row)[] = [];
  for (let after: string | undefined; ; ) {
    const { data, next } = await bridge.list<OurTask & Row>(actor, {
      object: 'task',
      limit: BATCH,
      ...(session && { where: { session_id: session } }),
      ...(after && { after }),
    });
    for (const task of data) if (reader.isMine(actor, task)) found.push(task);
    if (!next) return found;
    after = next;
  }
}

async function wanted(
  { reader }: ListDeps,
  actor: Actor,
  task: OurTask & Row,
  { status, statusTimestampAfter }: ListTasksRequest,
): Promise<boolean> {
  if (statusTimestampAfter && Date.parse(task.updated_at) < Date.parse(statusTimestampAfter)) return false;
  if (status === undefined || status === TaskState.TASK_STATE_UNSPECIFIED) return true;
  // How a question is shown depends on who reads it, so the few tasks that wait are read.
  if (!WAITING.includes(task.status) || !WAITING_STATES.includes(status))
    return status === toWireState(task.status, task);
  const shown = await reader.snapshot(actor, { task, contextId: reader.contextOf(task) }, 0, false);
  return shown.status?.state === status;
}
const WAITING: readonly string[] = ['INPUT_REQUIRED', 'AUTH_REQUIRED'];
const WAITING_STATES: readonly TaskState[] = [TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_AUTH_REQUIRED];

function newestFirst(a: OurTask, b: OurTask): number {
  return compare(b.updated_at, a.updated_at) || compare(b.id, a.id);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The index of the first task after the one a page token names, whether or not that task still exists. */
function indexAfter(tasks: readonly OurTask[], [at, id]: readonly [string, string]): number {
  const found = tasks.findIndex((task) => task.updated_at < at || (task.updated_at === at && task.id < id));
  return found < 0 ? tasks.length : found;
}

function tokenOf({ updated_at, id }: OurTask): string {
  return Buffer.from(JSON.stringify([updated_at, id])).toString('base64url');
}

function readToken(token: string): readonly [string, string] {
  try {
    const value = JSON.parse(Buffer.from(token, 'base64url').toString('utf8')) as unknown;
    const [at, id, more] = value as unknown[];
    if (typeof at === 'string' && typeof id === 'string' && more === undefined) return [at, id];
  } catch {
    // not one of ours
  }
  throw new Refusal('INVALID_PARAMS', 'pageToken is not one that was given out here');
}
