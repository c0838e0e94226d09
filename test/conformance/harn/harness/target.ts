/** The server under examination and the few verbs every check begins with. State made for one check is its own. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CoreEvent } from '../../../../src/model/events.ts';
import type { Message, Session, Task, Workspace } from '../../../../src/model/resources.ts';
import { among, Skip } from './expect.ts';
import type { OwnGateway } from './gateway.ts';
import type { Revision } from './revision.ts';
import { type Asking, createWire, type List, type Wire } from './wire.ts';

export const TERMINAL: readonly string[] = ['COMPLETED', 'FAILED', 'CANCELED'];

export interface Target extends Wire {
  /** The public suite's own run of names, distinct from any other run's. */
  readonly run: string;
  /** Present when we started the process ourselves. */
  readonly own: OwnGateway | undefined;
  /** A key of another tenant; undefined when nobody gave us one. */
  readonly outsider: string | undefined;

  /** What only our own process can be asked for. Elsewhere the check is skipped. */
  mine(): OwnGateway;
  /** Not every agent does this: elsewhere a reason to skip, here a failure. */
  lacking(why: string): never;
  /** The server was asked to do something it may not have; on a 501 elsewhere the check is skipped. */
  made<T>(method: string, path: string, asking?: Asking): Promise<T>;

  workspace(): Promise<Workspace>;
  session(more?: object): Promise<Session>;
  /** Text given to the agent as a new task, in a session of its own unless one is named. */
  submit(text: string, session?: string, more?: Asking & { readonly with?: object }): Promise<Task>;
  task(id: string): Promise<Task>;
  /** Waits until the task is in one of these states. */
  reaches(id: string, ...states: string[]): Promise<Task>;
  ended(id: string): Promise<Task>;
  /** Submitted and ended. */
  done(text: string, session?: string): Promise<Task>;
  events(path: string): Promise<readonly CoreEvent[]>;
  messages(session: string): Promise<readonly Message[]>;
}

export function said(text: string, role = 'user') {
  return { role, parts: [{ type: 'text', text, visibility: 'public' }] };
}

export function unique(what: string): string {
  return `${what}-${randomUUID()}`;
}

export interface TargetOptions {
  readonly base: string;
  readonly revision: Revision;
  readonly key?: string | undefined;
  readonly outsider?: string | undefined;
  readonly own?: OwnGateway | undefined;
  readonly timeoutMs?: number;
  readonly workspaceId?: string | undefined;
}

export function createTarget(options: TargetOptions): Target {
  const wire = createWire(options.base.replace(/\/$/, ''), options.key, options.revision, options.timeoutMs);
  const { own } = options;
  let home: Promise<Workspace> | undefined;

  function lacking(why: string): never {
    throw own ? new Error(why) : new Skip(why);
  }

  async function made<T>(method: string, path: string, asking: Asking = {}): Promise<T> {
    const answer = await wire.ask<T>(method, path, asking);
    if (answer.status === 501 || answer.status === 405) lacking(`${method} ${path} is not implemented`);
    among(Math.floor(answer.status / 100), [2], `${method} ${path}: ${answer.status} ${answer.text.slice(0, 300)}`);
    return answer.body;
  }

  async function workspace(): Promise<Workspace> {
    if (options.workspaceId) return await wire.ok('GET', `/v1/workspaces/${options.workspaceId}`);
    const body = { name: unique('conformance'), root: 'harn://conformance' };
    return await made('POST', '/v1/workspaces', { body });
  }

  async function session(more: object = {}): Promise<Session> {
    home ??= workspace();
    const body = { workspace_id: (await home).id, ...more };
    return await wire.ok('POST', '/v1/sessions', { body });
  }

  async function submit(text: string, sessionId?: string, more: Asking & { with?: object } = {}): Promise<Task> {
    const { with: members, ...asking } = more;
    const where = sessionId ?? (await session()).id;
    return await wire.ok('POST', `/v1/sessions/${where}/tasks`, { ...asking, body: { input: said(text), ...members } });
  }

  const task = (id: string): Promise<Task> => wire.ok('GET', `/v1/tasks/${id}`);

  async function reaches(id: string, ...states: string[]): Promise<Task> {
    const deadline = Date.now() + Math.min(wire.timeoutMs, 15_000);
    for (;;) {
      const now = await task(id);
      if (states.includes(now.status)) return now;
      if (TERMINAL.includes(now.status))
        lacking(`the task ended as ${now.status}, never reaching ${states.join(' or ')}`);
      if (Date.now() > deadline)
        throw new Error(`task ${id} stayed ${now.status}, never reaching ${states.join(' or ')}`);
      await sleep(10);
    }
  }

  const ended = (id: string) => reaches(id, ...TERMINAL);

  async function events(path: string): Promise<readonly CoreEvent[]> {
    const all: CoreEvent[] = [];
    for (;;) {
      const after = all.at(-1)?.id;
      const more = `${path.includes('?') ? '&' : '?'}limit=200${after ? `&after_event_id=${after}` : ''}`;
      const { data, page } = await wire.ok<List<CoreEvent>>('GET', `${path}${more}`);
      all.push(...data);
      if (!page.has_more) return all;
    }
  }

  return {
    ...wire,
    run: randomUUID(),
    own,
    outsider: options.outsider,
    mine() {
      if (!own) throw new Skip('needs a process of our own');
      return own;
    },
    lacking,
    made,
    workspace,
    session,
    submit,
    task,
    reaches,
    ended,
    async done(text, sessionId) {
      return await ended((await submit(text, sessionId)).id);
    },
    events,
    async messages(sessionId) {
      return (await wire.ok<List<Message>>('GET', `/v1/sessions/${sessionId}/messages?limit=200`)).data;
    },
  };
}
