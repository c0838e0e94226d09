/**
 * The 26 checks of the public suite: the same requests with the same assertions in the same order, and state that flows
 * from one to the next. They ask little; what they leave out is in the files beside this one.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { among, equal, list, Skip, text, truth } from './harness/expect.ts';
import { eventOf, openStream } from './harness/stream.ts';
import { type Category, category } from './harness/suite.ts';
import type { Target } from './harness/target.ts';
import type { Answer, Asking, WireError } from './harness/wire.ts';
import { EMPTY_SHA256, ENDS, NEXT, SECRET_WORDS, STATES } from './public-words.ts';

/** A body as it came. */
type Body = Readonly<Record<string, unknown>>;

interface Known {
  capabilities: Record<string, boolean>;
  workspace: string | undefined;
  session: string | undefined;
  task: string | undefined;
  event: string | undefined;
  receipt: string | undefined;
  outcome: string | undefined;
}

export interface PublicOptions {
  readonly workspaceId?: string | undefined;
  readonly sessionId?: string | undefined;
  /** Read by the report. */
  readonly capabilities: Record<string, boolean>;
}

export function publicSuite(options: PublicOptions): readonly Category[] {
  const known: Known = {
    capabilities: options.capabilities,
    workspace: options.workspaceId,
    session: options.sessionId,
    task: undefined,
    event: undefined,
    receipt: undefined,
    outcome: undefined,
  };

  const metadata = ({ run }: Target) => ({ harn_agents_conformance: true, run_id: run });
  const message = (at: Target, words: string) => ({
    role: 'user',
    parts: [{ type: 'text', text: words, visibility: 'public' }],
    metadata: metadata(at),
  });

  /** With a key where the revision takes one. */
  async function asked(at: Target, allowed: readonly number[], method: string, path: string, asking: Asking = {}) {
    const { once, ...rest } = asking;
    const keyed = once !== undefined && at.revision.keyedPaths.test(path);
    const answer = await at.ask<Body>(method, path, keyed ? asking : rest);
    const shown = answer.text.slice(0, 300);
    truth(
      allowed.includes(answer.status),
      `${method} ${path}: expected ${allowed.join('/')}, got ${answer.status} ${shown}`,
    );
    return answer;
  }

  function resource({ body }: Answer<Body>, object: string): string {
    equal(body?.object, object, 'object');
    return text(body.id, `${object} id`);
  }

  function listed({ body }: Answer<Body>): readonly Body[] {
    text(body?.object, 'list object');
    return list<Body>(body.data, 'data');
  }

  function taskIn(answer: Answer<Body>): Body {
    resource(answer, 'task');
    among(answer.body.status, STATES, 'status');
    if (typeof answer.body.outcome_id === 'string') known.outcome = answer.body.outcome_id;
    if (typeof answer.body.receipt_id === 'string') known.receipt = answer.body.receipt_id;
    return answer.body;
  }

  async function workspaceId(at: Target): Promise<string> {
    if (known.workspace) return known.workspace;
    const body = {
      name: `agents-conformance-${at.run}`,
      root: `harn://conformance/${at.run}`,
      metadata: metadata(at),
    };
    const answer = await asked(at, [201, 200, 404, 501], 'POST', '/v1/workspaces', {
      body,
      once: `${at.run}-workspace`,
    });
    if (answer.status >= 400) {
      const [first] = listed(await asked(at, [200], 'GET', '/v1/workspaces'));
      truth(first, 'no workspace can be made and none exists');
      known.workspace = text(first.id, 'workspace id');
      return known.workspace;
    }
    known.workspace = resource(answer, 'workspace');
    const patch = { body: { metadata: metadata(at) }, once: `${at.run}-workspace-patch` };
    await asked(at, [200, 501], 'PATCH', `/v1/workspaces/${known.workspace}`, patch);
    return known.workspace;
  }

  async function sessionId(at: Target): Promise<string> {
    if (known.session) return known.session;
    const body = {
      workspace_id: await workspaceId(at),
      initial_messages: [message(at, 'agents conformance probe')],
      metadata: metadata(at),
    };
    const answer = await asked(at, [201, 200], 'POST', '/v1/sessions', { body, once: `${at.run}-session` });
    known.session = resource(answer, 'session');
    const patch = { summary: 'agents conformance probe', metadata: metadata(at) };
    await asked(at, [200, 501], 'PATCH', `/v1/sessions/${known.session}`, {
      body: patch,
      once: `${at.run}-session-patch`,
    });
    return known.session;
  }

  async function submit(at: Target, once = `${at.run}-task-${randomUUID()}`, words = 'agents conformance probe') {
    const path = `/v1/sessions/${await sessionId(at)}/tasks`;
    return taskIn(await asked(at, [202, 200], 'POST', path, { body: { input: message(at, words) }, once }));
  }

  async function taskId(at: Target): Promise<string> {
    known.task ??= text((await submit(at)).id, 'task id');
    return known.task;
  }

  function needs(capability: string): void {
    if (known.capabilities[capability] !== true) throw new Skip(`discovery does not say ${capability}`);
  }

  async function firstFrame(at: Target, path: string, meanwhile?: () => Promise<unknown>): Promise<void> {
    const stream = await openStream(at, path);
    try {
      equal(stream.status, 200, 'status');
      truth((stream.headers.get('content-type') ?? '').startsWith('text/event-stream'), 'not an event stream');
      if (meanwhile) await sleep(100);
      await meanwhile?.();
      eventOf(await stream.next(Math.min(at.timeoutMs, 5000)));
    } finally {
      stream.close();
    }
  }

  async function events(at: Target, task: string, query = ''): Promise<readonly Body[]> {
    return listed(await asked(at, [200], 'GET', `/v1/tasks/${task}/events${query}`));
  }

  const core = category('core', {
    async discovery(at) {
      const { body } = await asked(at, [200], 'GET', '/v1', { as: null });
      equal(body.object, 'protocol_discovery', 'object');
      equal(body.protocol_family, 'harn_agents_protocol', 'protocol_family');
      equal(body.current_version, at.revision.version, 'current_version');
      truth(
        list(body.supported_versions, 'supported_versions').includes(at.revision.version),
        'the version is not supported',
      );
      truth(typeof body.capabilities === 'object' && body.capabilities !== null, 'capabilities is not an object');
      for (const [name, value] of Object.entries(body.capabilities)) {
        if (typeof value === 'boolean') known.capabilities[name] = value;
      }
    },
    async agent_card(at) {
      const { body } = await asked(at, [200], 'GET', '/v1/agent-card', { as: null });
      equal(body.object, 'agent_card', 'object');
      text(body.id, 'id');
      text(body.name, 'name');
      equal(body.protocol_version, at.revision.version, 'protocol_version');
      list(body.interfaces, 'interfaces');
      list(body.skills, 'skills');
    },
    async list_core_resources(at) {
      for (const path of ['tasks', 'sessions', 'artifacts', 'events', 'outcomes']) {
        listed(await asked(at, [200], 'GET', `/v1/${path}`));
      }
    },
    async workspace_crud(at) {
      const id = await workspaceId(at);
      if (options.workspaceId) resource(await asked(at, [200], 'GET', `/v1/workspaces/${id}`), 'workspace');
    },
    async session_crud(at) {
      const id = await sessionId(at);
      if (options.sessionId) resource(await asked(at, [200], 'GET', `/v1/sessions/${id}`), 'session');
    },
    async message_crud(at) {
      const path = `/v1/sessions/${await sessionId(at)}/messages`;
      const body = { message: message(at, 'agents conformance message') };
      const id = resource(await asked(at, [201, 200], 'POST', path, { body, once: `${at.run}-message` }), 'message');
      equal((await asked(at, [200], 'GET', `/v1/messages/${id}`)).body.object, 'message', 'object');
      listed(await asked(at, [200], 'GET', path));
    },
    async task_crud(at) {
      const id = text((await submit(at)).id, 'task id');
      known.task = id;
      taskIn(await asked(at, [200], 'GET', `/v1/tasks/${id}`));
      const [first] = await events(at, id);
      if (typeof first?.id === 'string') known.event = first.id;
      const stop = { body: { reason: 'agents conformance cancel' }, once: `${at.run}-cancel` };
      const canceled = await asked(at, [200, 409, 422], 'POST', `/v1/tasks/${id}/cancel`, stop);
      if (canceled.status === 200) among(canceled.body.status, STATES, 'status');
    },
    async artifact_crud(at) {
      const body = {
        kind: 'log',
        mime_type: 'text/plain',
        uri: `harn://conformance/${at.run}/artifact.txt`,
        visibility: 'public',
        sha256: EMPTY_SHA256,
        workspace_id: await workspaceId(at),
        metadata: metadata(at),
      };
      const made = await asked(at, [201, 200], 'POST', '/v1/artifacts', { body, once: `${at.run}-artifact` });
      await asked(at, [200], 'GET', `/v1/artifacts/${resource(made, 'artifact')}`);
    },
    async event_reads(at) {
      const [any] = listed(await asked(at, [200], 'GET', '/v1/events'));
      const id = known.event ?? any?.id;
      if (typeof id !== 'string') throw new Skip('there is no event anywhere');
      const { body } = await asked(at, [200], 'GET', `/v1/events/${id}`);
      equal(body.object, 'event', 'object');
      text(body.event, 'event');
    },
    async persona_memory_branch_reads(at) {
      for (const path of ['personas', 'connectors', 'skills', 'quotas', 'memories']) {
        const answer = await asked(at, [200, 501], 'GET', `/v1/${path}`);
        if (answer.status === 200) listed(answer);
      }
      const body = { kind: 'session', base_ref: 'main', metadata: metadata(at) };
      const path = `/v1/sessions/${await sessionId(at)}/branches`;
      const made = await asked(at, [201, 200, 501], 'POST', path, { body, once: `${at.run}-branch` });
      if (made.status === 501) return;
      const id = text(made.body.id, 'branch id');
      equal((await asked(at, [200], 'GET', `/v1/branches/${id}`)).body.object, 'branch', 'object');
    },
  });

  const streaming = category('streaming', {
    async session_sse_event_shape(at) {
      const id = await sessionId(at);
      const body = { message: message(at, 'agents conformance stream message') };
      await firstFrame(at, `/v1/sessions/${id}/events/stream`, () =>
        asked(at, [201, 200], 'POST', `/v1/sessions/${id}/messages`, { body, once: `${at.run}-stream-message` }),
      );
    },
    async task_sse_event_shape(at) {
      await firstFrame(at, `/v1/tasks/${(await submit(at)).id}/stream`);
    },
  });

  const lifecycle = category('lifecycle', {
    async task_state_machine(at) {
      const submitted = await submit(at);
      const id = text(submitted.id, 'task id');
      known.task = id;
      const seen = [submitted.status as string];
      const deadline = Date.now() + Math.min(at.timeoutMs, 10_000);
      for (;;) {
        const { status } = taskIn(await asked(at, [200], 'GET', `/v1/tasks/${id}`));
        if (status !== seen.at(-1)) {
          truth(NEXT[seen.at(-1)!]?.includes(status as string), `${seen.at(-1)} was followed by ${status}`);
          seen.push(status as string);
        }
        if (ENDS.includes(status as string) || Date.now() > deadline) break;
        await sleep(250);
      }
      const all = await events(at, id);
      truth(all.length > 0, 'the task has no events');
      for (const event of all) {
        equal(event.object, 'event', 'object');
        text(event.event, 'event');
        truth(Number.isInteger(event.sequence) && (event.sequence as number) >= 0, 'sequence is not a count');
      }
    },
    async cancel_terminal_consistency(at) {
      const id = text((await submit(at)).id, 'task id');
      const stop = { body: { reason: 'agents conformance cancel' }, once: `${at.run}-lifecycle-cancel` };
      await asked(at, [200, 409, 422], 'POST', `/v1/tasks/${id}/cancel`, stop);
      const task = taskIn(await asked(at, [200], 'GET', `/v1/tasks/${id}`));
      if (task.status === 'CANCELED') equal(task.completed_at ?? null, null, 'completed_at of a canceled task');
    },
  });

  const idempotency = category('idempotency', {
    async same_key_same_body_reuses_task(at) {
      const once = `${at.run}-same-body`;
      equal((await submit(at, once)).id, (await submit(at, once)).id, 'task id');
    },
    async same_key_different_body_conflicts(at) {
      const once = `${at.run}-different-body`;
      await submit(at, once, 'first body');
      const path = `/v1/sessions/${await sessionId(at)}/tasks`;
      const again = { body: { input: message(at, 'second body') }, once };
      const { body } = await asked(at, [409], 'POST', path, again);
      equal((body.error as WireError | undefined)?.code, 'idempotency_key_reused', 'error.code');
    },
  });

  const auth = category('auth-and-scopes', {
    async authenticated_request_succeeds(at) {
      if (!at.key) throw new Skip('no key was given');
      listed(await asked(at, [200], 'GET', '/v1/tasks'));
    },
    async missing_auth_rejected(at) {
      const { body, text: raw } = await asked(at, [401, 403], 'GET', '/v1/tasks', { as: null });
      among((body.error as WireError | undefined)?.code, ['unauthenticated', 'permission_denied'], 'error.code');
      if (at.key) truth(!raw.includes(at.key), 'the key is in the answer');
    },
    async unsupported_protocol_version_rejected(at) {
      const { body } = await asked(at, [426], 'GET', '/v1/tasks', { version: 'agents-protocol-1900-01-01' });
      equal((body.error as WireError | undefined)?.code, 'unsupported_protocol_version', 'error.code');
    },
  });

  const replay = category('replay', {
    async event_range_is_byte_deterministic(at) {
      needs('replay');
      const path = `/v1/tasks/${await taskId(at)}/events`;
      const [first, second] = [await asked(at, [200], 'GET', path), await asked(at, [200], 'GET', path)];
      equal(JSON.stringify(second.body), JSON.stringify(first.body), 'the second reading');
    },
    async event_resume_cursor(at) {
      needs('replay');
      const id = await taskId(at);
      const [first] = await events(at, id);
      if (!first) throw new Skip('the task has no events');
      await events(at, id, `?after_event_id=${first.id}`);
    },
  });

  const receipts = category('receipts', {
    async task_receipts(at) {
      needs('receipts');
      const [first] = listed(await asked(at, [200], 'GET', `/v1/tasks/${await taskId(at)}/receipts`));
      truth(first, 'the task has no receipt');
      equal(first.object, 'receipt', 'object');
      known.receipt = text(first.id, 'receipt id');
      const one = await asked(at, [200], 'GET', `/v1/receipts/${known.receipt}`);
      equal(one.body.object, 'receipt', 'object');
      text(one.body.format, 'format');
    },
    async receipt_verification(at) {
      needs('receipts');
      if (!known.receipt) throw new Skip('no receipt is known');
      const path = `/v1/receipts/${known.receipt}/verify`;
      const { body } = await asked(at, [200], 'POST', path, { body: {}, once: `${at.run}-receipt-verify` });
      equal(typeof body.valid, 'boolean', 'valid');
      text(body.checked_at, 'checked_at');
    },
  });

  const vaults = category('vaults', {
    async vault_create_and_read(at) {
      const body = {
        workspace_id: await workspaceId(at),
        provider: 'conformance-oauth',
        capabilities: ['oauth_refresh'],
        metadata: metadata(at),
      };
      const made = await asked(at, [201, 200, 501], 'POST', '/v1/vaults', { body, once: `${at.run}-vault` });
      if (made.status === 501) throw new Skip('there are no vaults');
      const id = resource(made, 'vault');
      for (const word of SECRET_WORDS) truth(!made.text.includes(word), `the vault shows ${word}`);
      await asked(at, [200], 'GET', `/v1/vaults/${id}`);
    },
  });

  const outcomes = category('outcomes', {
    async outcome_list_and_read(at) {
      const [first] = listed(await asked(at, [200], 'GET', '/v1/outcomes'));
      const id = known.outcome ?? first?.id;
      if (typeof id !== 'string') throw new Skip('there is no outcome');
      const { body } = await asked(at, [200], 'GET', `/v1/outcomes/${id}`);
      equal(body.object, 'outcome', 'object');
      text(body.status, 'status');
    },
  });

  const webhooks = category('webhooks', {
    async connector_webhook_metadata(at) {
      const answer = await asked(at, [200, 501], 'GET', '/v1/connectors');
      if (answer.status === 501) throw new Skip('there are no connectors');
      const hooked = listed(answer).find(
        ({ webhook, event_kinds }) =>
          webhook !== undefined ||
          (Array.isArray(event_kinds) && event_kinds.some((kind) => String(kind).includes('webhook'))),
      );
      if (!hooked) throw new Skip('no connector takes webhooks');
      equal(hooked.object, 'connector', 'object');
      list(hooked.event_kinds, 'event_kinds');
    },
  });

  return [core, streaming, lifecycle, idempotency, auth, replay, receipts, vaults, outcomes, webhooks];
}
