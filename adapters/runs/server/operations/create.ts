/**
 * Creates a run, once per idempotency key: removes sensitive values first, then finds a workspace and session, then submits the
 * task. The same key with the same request finds the run it created; with another request it is refused.
 */
import {
  type Actor,
  beginning,
  everyRow,
  isObject,
  type Json,
  type JsonObject,
  type MessageInput,
  type Part,
  type Row,
  type Session,
  type Task,
} from '../../../../src/index.ts';
import { type TraceMembers, traceMembers, traceParentOf } from '../../../../src/transport/outbound/trace-context.ts';
import { toCoreAttachment, toCoreInput, toWireRun } from '../../translate.ts';
import type { Call, Reply, RouteContext } from '../call.ts';
import { isFault, RunsRefusal, refusing } from '../refusal.ts';
import { type RunMetadata, runIdOf, runMetadataOf } from '../run-metadata.ts';
import type { Mark } from '../sensitive.ts';
import { openSession, workspaceFor } from '../workspaces.ts';
import { type RunRequest, readCreate } from './create-body.ts';

interface Request {
  readonly actor: Actor;
  /** The idempotency key, as a name that does not give it away. */
  readonly key: string;
  /** A digest of the request as received. */
  readonly digest: string;
  readonly requestId: string;
  readonly wanted: RunRequest;
  readonly trace: TraceMembers;
}

const LONGEST_KEY = 255;
const LONGEST_TITLE = 80;

export function createRun(context: RouteContext): (call: Call) => Promise<Reply> {
  const { bridge, runReader, turns, settings, cleaner } = context;

  async function begin(request: Request): Promise<{ task: Task; replayed: boolean }> {
    const { actor, key } = request;
    const scope = `keys/${actor.tenant_id ?? ''}`;
    const bound = await bridge.bound('runs', scope, key);
    const known = bound && (await bridge.view<Session & Row>(actor, 'session', bound.id));
    const before = known && (await findAttempt(actor, known.id, key));
    if (before) return { task: sameRequest(before, request.digest), replayed: true };
    const session = known ?? (await sessionFor(request));
    if (!known) {
      const to = { object: 'session', id: session.id };
      await bridge.submit({ kind: 'binding.set', actor, body: { protocol: 'runs', scope, wire_id: key, to } });
    }
    try {
      return { task: await submit(request, session), replayed: false };
    } catch (thrown) {
      // Another process was quicker with the same key.
      const theirs = isFault(thrown, 'idempotency_key_reused') && (await findAttempt(actor, session.id, key));
      if (!theirs) throw thrown;
      return { task: sameRequest(theirs, request.digest), replayed: true };
    }
  }

  async function findAttempt(actor: Actor, sessionId: string, key: string): Promise<Task | undefined> {
    const query = { object: 'task', where: { session_id: sessionId } };
    for await (const task of everyRow((paging) => bridge.list<Task & Row>(actor, { ...query, ...paging }))) {
      const metadata = runMetadataOf(task);
      if (metadata?.key === key && metadata.attempt === 1 && !task.parent_task_id) return task;
    }
    return undefined;
  }

  function sameRequest(task: Task, digest: string): Task {
    if (runMetadataOf(task)?.request !== digest) throw new RunsRefusal('IDEMPOTENCY_KEY_REUSED');
    return task;
  }

  async function sessionFor({ actor, key, digest, wanted }: Request): Promise<Session> {
    const named = await openSession(bridge, actor, wanted.metadata);
    if (named) return named;
    const workspace = await workspaceFor(bridge, actor, settings, wanted.workspace_id);
    const { value } = cleaner.clean({ input: wanted.input }, wanted.tags);
    const title = titleOf(value.input as JsonObject);
    const { resource } = await bridge.submit({
      kind: 'session.create',
      actor,
      body: {
        workspace_id: workspace.id,
        ...(settings.personaId && { persona_id: settings.personaId }),
        metadata: { runs: { request: digest }, ...(title && { title }) },
      },
      idempotency: { key: `runs-${key}` },
    });
    return resource as Session & Row;
  }

  async function submit(request: Request, session: Session): Promise<Task> {
    const { actor, key, digest, requestId, wanted } = request;
    const { value, marks } = cleaner.clean({ input: wanted.input, metadata: wanted.metadata }, wanted.tags);
    const plan = wanted.plan && cleaner.clean({ plan: wanted.plan }, []);
    const kept = value as { input?: JsonObject; metadata?: JsonObject };
    const runs: RunMetadata = {
      request_id: requestId,
      key,
      request: digest,
      attempt: 1,
      run_class: wanted.run_class,
      workspace_id: wanted.workspace_id,
      subject_id: wanted.subject_id,
      ...(kept.metadata && { metadata: kept.metadata }),
      ...(wanted.routing_hint && { routing_hint: wanted.routing_hint }),
      ...(wanted.streaming !== undefined && { streaming: wanted.streaming }),
      ...retention(wanted),
    };
    const input = toCoreInput(kept.input ?? {}, await attachments(actor, wanted.attachment_refs), marks);
    const all: readonly Mark[] = [...marks, ...(plan?.marks ?? [])];
    // Tagged values are not logged; the agent gets the input as received, in memory.
    const hidden = marks.some(({ field }) => field.startsWith('input'));
    const files = input.parts.filter(({ type }) => type === 'artifact_ref' || type === 'file_ref');
    const whole = withPlanning(toCoreInput(wanted.input, files, marks), wanted.routing_hint);
    const secrets = hidden ? taken({ input: wanted.input }, { input: kept.input ?? {} }) : [];
    const { resource } = await bridge.submit({
      kind: 'task.submit',
      actor,
      body: {
        session_id: session.id,
        input: withPlanning(input, wanted.routing_hint) as JsonObject,
        ...(settings.unanswered === 'fail' && { unanswered: 'fail' as const }),
        ...(settings.agent && { agent: settings.agent }),
        metadata: {
          runs: runs as Json,
          ...(plan && { plan: plan.value.plan as Json }),
          // Core reads a gateway's claims from here; the rest of the metadata stays with the run.
          ...(kept.metadata?.tollbridge !== undefined && { tollbridge: kept.metadata.tollbridge }),
        },
      },
      idempotency: { key: `runs-${key}` },
      ...request.trace,
      ...(all.length > 0 && { redactions: all }),
      ...(hidden && { unlogged: { input: whole as JsonObject, secrets } }),
    });
    return resource as Task & Row;
  }

  async function attachments(actor: Actor, refs: readonly string[]): Promise<readonly Part[]> {
    return await Promise.all(
      refs.map(async (ref) => {
        if (!/^artifact_[A-Za-z0-9_.-]{1,190}$/.test(ref)) return toCoreAttachment(ref, false);
        const seen = await bridge.view(actor, 'artifact', ref).then(
          () => true,
          () => false,
        );
        return toCoreAttachment(ref, seen);
      }),
    );
  }

  return async (call) => {
    const { actor, requestId } = call;
    const clientKey = keyOf(call);
    const body = await refusing({ invalid_request: 'INPUT_PAYLOAD_INVALID' }, () => call.body());
    const wanted = readCreate(body);
    const key = context.digest(['key', actor.tenant_id ?? null, clientKey]).slice(-32);
    const trace = traceMembers(traceParentOf(call.request));
    const request: Request = { actor, key, digest: context.digest(body as Json), requestId, wanted, trace };
    const { task, replayed } = await refusing({ not_found: 'IDEMPOTENCY_KEY_REUSED' }, () =>
      turns.take(`create ${key}`, () => begin(request)),
    );
    const { id, first, standing } = await runReader.open(actor, runIdOf(task.id));
    // A new run is rendered as it was when it was accepted, however quick its worker is.
    const run = replayed ? toWireRun(id, first, standing) : toWireRun(id, first, QUEUED(first));
    return { status: replayed ? 200 : 201, body: { ...run, replayed } };
  };
}

const QUEUED = ({ created_at }: Task) =>
  ({ status: 'queued', seq: 0, questions: [], updated_at: created_at, received_at: created_at }) as const;

function keyOf({ request }: Call): string {
  const keys = request.headersDistinct['idempotency-key'] ?? [];
  const [key] = keys;
  if (!key) throw new RunsRefusal('IDEMPOTENCY_KEY_REQUIRED');
  if (keys.length > 1 || key.length > LONGEST_KEY) throw new RunsRefusal('REQUEST_INVALID', 'one key, not too long');
  return key;
}

function titleOf(input: JsonObject | undefined): string | undefined {
  const text = Object.values(input ?? {}).find((value) => typeof value === 'string' && value !== '');
  return typeof text === 'string' ? beginning(text, LONGEST_TITLE) : undefined;
}

/** Advisory, by path. */
function retention({ tags }: RunRequest): { retention_hint_days?: JsonObject } {
  const hints = tags.flatMap(({ shown, retention_hint_days: days }) => (days === undefined ? [] : [[shown, days]]));
  return hints.length > 0 ? { retention_hint_days: Object.fromEntries(hints) } : {};
}

/** `require_planning`: the first step is a plan, which the agent is asked for before anything else. */
function withPlanning(input: MessageInput, hint: RunRequest['routing_hint']): MessageInput {
  if (hint !== 'require_planning') return input;
  const ask: Part = { type: 'text', text: PLAN_FIRST, visibility: 'public' };
  return { ...input, parts: [...input.parts, ask] };
}
const PLAN_FIRST = 'Plan first: say which steps you will take, then take them.';

/** Texts and numbers of the received value that were removed from the stored one. */
function taken(came: Json, kept: Json | undefined): string[] {
  if (typeof came !== 'object' || came === null) {
    const text = typeof came === 'string' ? came : typeof came === 'number' ? String(came) : '';
    return text !== '' && kept !== came ? [text] : [];
  }
  const inside = isObject(kept) || Array.isArray(kept) ? (kept as JsonObject) : {};
  return Object.entries(came).flatMap(([name, member]) =>
    taken(member as Json, Object.hasOwn(inside, name) ? inside[name] : undefined),
  );
}
