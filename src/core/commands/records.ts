/** Commands that record without running anything: files, bindings, receipt checks, foreign calls. */
import type { Action } from '../../model/actions.ts';
import type { CommandKind } from '../../model/commands.ts';
import type { EventDraft } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import type { Artifact, Pointer, Session, Task } from '../../model/resources.ts';
import type { JsonObject } from '../../model/schema.ts';
import { isTerminal } from '../../model/words.ts';
import type { ActReader, InspectContent, Row, StoredReceipt } from '../../ports/index.ts';
import { requireReadScope } from '../access.ts';
import type { Acts } from '../actions/acts.ts';
import { excess, type ResultLimits } from '../actions/calls/result-size.ts';
import { blocked, decidedEvent, type Gate } from '../actions/gate.ts';
import type { Taints } from '../actions/taints.ts';
import { accepted, type Context, type Handlers, once } from '../context.ts';
import { keptBytes } from '../events/log.ts';
import { bindingId } from '../events/projections/resources.ts';
import type { Tools } from '../tools/catalog.ts';
import { receiptLocation, receiptResource } from './views.ts';

type Kinds = Extract<CommandKind, 'artifact.register' | 'receipt.verify' | 'binding.set' | 'passthrough'>;

export interface ReportedVerification {
  readonly valid: boolean;
  readonly reason?: string;
  readonly details: JsonObject;
}
export interface RecordDeps extends Context {
  readonly gate: Gate;
  readonly acts: Acts;
  readonly tools: Tools;
  readonly read: ActReader;
  readonly taints: Taints;
  /** Recomputes everything from the store. A tampered receipt is a result, not a fault. */
  readonly verify: (
    stored: StoredReceipt,
    options: { readonly trustAnchor?: string; readonly atTime?: string },
  ) => Promise<ReportedVerification>;
  readonly artifactLimit: number;
  readonly resultLimits: ResultLimits;
}

type Placed = { readonly workspace_id?: string | null; readonly session_id?: string | null };

const NEVER = new AbortController().signal;

export function recordHandlers(deps: RecordDeps): Pick<Handlers, Kinds> {
  const { store, log, access, ids } = deps;

  return {
    'artifact.register': async (command) => {
      const { actor, body, bytes } = command;
      const task = body.task_id ? await access.see<Task & Row>(actor, 'task', body.task_id) : undefined;
      const sessionId = body.session_id ?? task?.session_id;
      const session = sessionId ? await access.see<Session & Row>(actor, 'session', sessionId) : undefined;
      const home = body.workspace_id ?? task?.workspace_id ?? session?.workspace_id ?? null;
      if (home && !(await access.workspaceVisible(actor, home))) throw new Fault('not_found', `no workspace ${home}`);
      if (bytes && bytes.byteLength > deps.artifactLimit) {
        throw new Fault('payload_too_large', `an artifact may have at most ${deps.artifactLimit} bytes`);
      }
      const claimed = body.sha256?.replace(/^sha256:/, '').toLowerCase() ?? null;
      const kept = bytes ? await store.putBlob(bytes) : undefined;
      if (kept && claimed && kept !== claimed) {
        throw new Fault('invalid_request', 'sha256 does not match the content', { param: '/sha256' });
      }
      const id = ids.next('artifact');
      const { result, repeated } = await log.commit({
        // The bytes are part of the request: the same body with other content is another request.
        ...once(deps, { ...command, body: { ...body, content: kept ?? null } }, home, 'artifacts'),
        ...(task && { reads: [{ object: 'task', id: task.id }] }),
        decide(at) {
          const now = task && at.get<Task & Row>('task', task.id);
          const open = now && !isTerminal(now.status) ? now : undefined;
          const artifact: Artifact & { tenant_id?: string } = {
            id,
            object: 'artifact',
            created_at: at.now,
            updated_at: at.now,
            metadata: keptBytes(body.metadata, bytes?.byteLength),
            kind: body.kind,
            mime_type: body.mime_type,
            uri: body.uri ?? null,
            visibility: body.visibility,
            sha256: kept ?? claimed,
            workspace_id: home,
            session_id: session?.id ?? null,
            task_id: task?.id ?? null,
            // No receipt covers it, unless it is part of a task that has not ended.
            ...(!open && { receipt_id: null }),
            ...(actor.tenant_id && { tenant_id: actor.tenant_id }),
          };
          // In a running task it is part of the task's account; after its end the receipt is sealed without it.
          const event: EventDraft = {
            event: 'artifact.created',
            ...(open && { task_id: open.id }),
            resource: open ? { object: 'task', id: open.id } : { object: 'artifact', id },
            workspace_id: home,
            session_id: session?.id ?? null,
            actor: actor.id,
            payload: { artifact: artifact },
          };
          return { events: [event], result: { id } };
        },
      });
      const made = (result as { id: string }).id;
      return accepted('artifact.register', await access.see<Row>(actor, 'artifact', made), repeated);
    },

    'receipt.verify': async (command) => {
      const { actor, body } = command;
      const stored = await store.receipt(body.receipt_id);
      if (!stored || !(await access.locationVisible(actor, receiptLocation(stored)))) {
        throw new Fault('not_found', `no receipt ${body.receipt_id}`);
      }
      const verdict = await deps.verify(stored, {
        ...(body.trust_anchor && { trustAnchor: body.trust_anchor }),
        ...(body.at_time && { atTime: body.at_time }),
      });
      const checked_at = deps.clock.now();
      const event: EventDraft = {
        event: verdict.valid ? 'receipt.verified' : 'receipt.verification_failed',
        resource: { object: 'receipt', id: body.receipt_id },
        workspace_id: stored.chain,
        actor: actor.id,
        receipt_id: body.receipt_id,
        payload: { ...verdict, checked_at },
      };
      const details = { ...verdict, checked_at };
      const { result, repeated } = await log.commit({
        ...once(deps, command, stored.chain, body.receipt_id),
        decide: () => ({ events: [event], result: details }),
      });
      return accepted('receipt.verify', receiptResource(stored), repeated, { details: result as JsonObject });
    },

    'binding.set': async (command) => {
      const { actor, body } = command;
      requireReadScope(actor, body.to.object);
      const row = await access.see<Row & Placed>(actor, body.to.object, body.to.id);
      const home = body.to.object === 'workspace' ? row.id : (row.workspace_id ?? null);
      // An event about a task must be in the task's stream: a receipt covers a task's events without a gap.
      const inside = {
        ...(body.to.object === 'session' && { session_id: row.id }),
        ...(body.to.object === 'task' && { session_id: row.session_id ?? null, task_id: row.id }),
      };
      const id = bindingId(body.protocol, body.scope, body.wire_id);
      const { repeated } = await log.commit({
        ...once(deps, command, home, id),
        reads: [{ object: 'binding', id }],
        decide(at) {
          const before = at.get<Row & { to: Pointer }>('binding', id);
          if (before && (before.to.id !== body.to.id || before.to.object !== body.to.object)) {
            // The bound resource may be another principal's, so the message does not name it.
            throw new Fault('conflict', `${body.wire_id} already stands for something else`);
          }
          if (before) return { events: [], result: { id } };
          const { protocol, scope, wire_id, to } = body;
          return {
            events: [
              {
                event: 'vendor.tollbridge.bound',
                resource: to,
                workspace_id: home,
                ...inside,
                actor: actor.id,
                payload: { protocol, scope, wire_id, to: to },
              },
            ],
            result: { id },
          };
        },
      });
      return accepted('binding.set', row, repeated);
    },

    passthrough: async (command) => {
      const { actor, body } = command;
      if (!(await access.workspaceVisible(actor, body.workspace_id))) {
        throw new Fault('not_found', `no workspace ${body.workspace_id}`);
      }
      const session = body.session_id ? await access.see<Session & Row>(actor, 'session', body.session_id) : undefined;
      const task = body.task_id ? await access.see<Task & Row>(actor, 'task', body.task_id) : undefined;
      if (body.server && !body.refused) deps.tools.requirePassing(body.server);
      const args: JsonObject = { params_hash: deps.hash(log.clean(body.params ?? null)) };
      const effect = body.effect ?? (body.server ? 'unknown' : 'none');
      const action: Action = {
        id: ids.next('action'),
        kind: 'extension',
        actor,
        workspace_id: body.workspace_id,
        ...(session && { session_id: session.id }),
        ...(task && { task_id: task.id }),
        tool: body.method,
        server: body.server ?? body.protocol,
        ...(body.target && { target: body.target }),
        arguments: args,
        // The log holds a hash of the request; rules still see the facts of its params.
        facts: deps.read(
          {
            kind: 'extension',
            tool: body.method,
            effect,
            evidence: 'held',
            arguments: { params: body.params ?? null },
            ...(body.target && { target: body.target }),
          },
          args,
        ),
        effect,
        evidence: 'held',
        ...((await deps.taints.of(session?.id)) && { attributes: { tainted: true } }),
        ...(await deps.acts.policyData({
          workspace_id: body.workspace_id,
          persona_id: session?.persona_id ?? null,
          most: session?.autonomy_tier,
        })),
      };
      const decision = body.refused ? blocked('frame_refused', body.refused) : await deps.gate(action);
      const decided = decidedEvent(action, decision);
      const carried: EventDraft = {
        ...decided,
        event: 'vendor.tollbridge.passthrough',
        payload: { protocol: body.protocol, method: body.method, ...action.arguments },
        ...(command.ext && { ext: command.ext }),
      };
      const passes = decision.verdict === 'allow';
      await log.commit({ decide: () => ({ events: passes ? [decided, carried] : [decided] }) });
      if (!passes || !body.server) return accepted('passthrough', session ?? task, false, { decision });
      const request = { method: body.method, params: body.params ?? {} };
      const { server, method: what, target } = body;
      const source = { server, what, ...(target && { target }) };
      const inspect: InspectContent = async (content, of) => {
        // The tool of a call that became a task is not looked up again, so it is not named: the rules of every tool apply.
        const { tool: _, ...unnamed } = action;
        const about: Action = of === 'call' ? { ...unnamed, kind: 'tool' } : action;
        const seen = await deps.acts.inspected(about, { status: 'ok', output: content });
        if (seen.status !== 'ok') throw new Fault('policy_violation', seen.error ?? 'the content was withheld');
        if (seen.taint && session) await deps.taints.mark(session, source);
        return seen.output as JsonObject;
      };
      const signal = command.signal ?? NEVER;
      const details = await deps.tools.pass(actor, server, request, signal, command.context, inspect);
      const over = excess(details, deps.resultLimits);
      if (over)
        throw new Fault('payload_too_large', `the answer of ${body.server} was not passed on: it holds ${over}`);
      if (session && deps.tools.taints(server, request)) await deps.taints.mark(session, source);
      return accepted('passthrough', session ?? task, false, { decision, details });
    },
  };
}
