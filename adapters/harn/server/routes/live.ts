/**
 * Attaching to a live session: watching takes the scopes for reading it, controlling those for submitting tasks. Each attachment is
 * decided by policy and logged; heartbeats are not. The events themselves are followed at the session's stream.
 */
import {
  type Actor,
  Fault,
  type InputCommand,
  type InputGrant,
  type JsonObject,
  type Row,
  type Session,
} from '../../../../src/index.ts';
import type { NewerWire } from '../../revisions/schemas-2026-10-11.ts';
import type { Call, Reply, RouteContext, Routes } from '../call.ts';
import { holds, requireScope } from '../exchange.ts';
import type { Attachment } from '../live-clients.ts';

type Ids =
  | 'listSessionLiveClients'
  | 'attachSessionClient'
  | 'takeoverSessionClient'
  | 'detachSessionClient'
  | 'heartbeatSessionClient'
  | 'updateSessionInputs';

export function liveRoutes({ bridge, live }: RouteContext): Pick<Routes, Ids> {
  async function openSession({ actor, params }: Call): Promise<Session & Row> {
    const session = await bridge.view<Session & Row>(actor, 'session', params.session_id!);
    if (session.state === 'CLOSED' || session.state === 'FAILED') {
      throw new Fault('conflict', `session ${session.id} is over`);
    }
    return session;
  }

  /** Decided and on record before it counts. */
  async function record({ actor, once }: Call, { id, workspace_id }: Session, method: string, params: JsonObject) {
    // The gate decides what the caller may do in the session; the routes check whether it may write to it.
    const asking: Actor = { ...actor, scopes: [...actor.scopes, 'sessions:write'] };
    const body = { protocol: 'harn', method, params, session_id: id, workspace_id, effect: 'none' as const };
    const { decision } = await bridge.submit({ kind: 'passthrough', actor: asking, ...once, body });
    if (decision && decision.verdict !== 'allow' && decision.verdict !== 'modify') {
      throw new Fault('policy_violation', decision.reason);
    }
  }

  async function attach(call: Call, attachment: Attachment): Promise<Reply> {
    const session = await openSession(call);
    const { actor } = call;
    if (attachment.mode === 'controller') requireScope(actor, 'tasks:write');
    if (attachment.permission_routing) requireScope(actor, 'approvals:write');
    const objection = live.objection(session.id, actor, attachment);
    if (objection) throw objection;
    const { client_id, mode, takeover } = attachment;
    await record(call, session, 'session/attach', { client_id, mode, takeover });
    return { body: live.attach(session.id, actor, attachment) };
  }

  return {
    listSessionLiveClients: async (call) => {
      const { id } = await openSession(call);
      return { body: { object: 'list', data: live.list(id) } };
    },
    attachSessionClient: (call) => {
      const wanted = call.body as NewerWire<'AttachSessionClientRequest'>;
      const { client_id, mode = 'observer', takeover = false, metadata = {} } = wanted;
      const controls = mode === 'controller';
      return attach(call, {
        client_id,
        mode,
        takeover,
        prompt_injection: wanted.prompt_injection ?? controls,
        // A controller that may not answer gets no questions, unless it asks for them.
        permission_routing: wanted.permission_routing ?? (controls && holds(call.actor, 'approvals:write')),
        metadata: metadata as JsonObject,
      });
    },
    takeoverSessionClient: (call) => {
      const { client_id, metadata = {} } = call.body as NewerWire<'SessionClientRequest'>;
      return attach(call, {
        client_id,
        mode: 'controller',
        takeover: true,
        prompt_injection: true,
        permission_routing: holds(call.actor, 'approvals:write'),
        metadata: metadata as JsonObject,
      });
    },
    detachSessionClient: async (call) => {
      const { client_id, reason } = call.body as NewerWire<'SessionClientRequest'>;
      const session = await bridge.view<Session & Row>(call.actor, 'session', call.params.session_id!);
      const change = live.detach(session.id, call.actor, client_id);
      await record(call, session, 'session/detach', { client_id, reason: reason ?? null });
      return { body: change };
    },
    heartbeatSessionClient: async (call) => {
      const { client_id, metadata } = call.body as NewerWire<'SessionClientRequest'>;
      const { id } = await openSession(call);
      return { body: live.heartbeat(id, call.actor, client_id, metadata as JsonObject | undefined) };
    },
    updateSessionInputs: async (call) => {
      const session = await openSession(call);
      const command = call.body as InputCommand;
      // Decided and recorded by name: the log never sees a value.
      if (command.kind !== 'list') await record(call, session, 'session/inputs', recordedCommand(command));
      return { body: await bridge.sessionInputs(call.actor, session.id, command) };
    },
  };
}

/** The command without its values. */
function recordedCommand(command: InputCommand): JsonObject {
  switch (command.kind) {
    case 'list':
      return { kind: command.kind };
    case 'remove':
      return { kind: command.kind, name: command.name };
    case 'put':
      return { kind: command.kind, replace: command.replace ?? false, inputs: [specOf(command)] };
    case 'sync': {
      const { sourceId, revision, inputs } = command.snapshot;
      return { kind: command.kind, source_id: sourceId, revision, inputs: inputs.map(specOf) };
    }
  }
}

function specOf({ spec: { name, kind, lifetime, usage } }: InputGrant): JsonObject {
  return { name, kind: kind ?? 'secret', lifetime: lifetime?.kind ?? 'session', usage: usage?.kind ?? 'session_tools' };
}
