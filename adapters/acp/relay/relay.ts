/**
 * The relay between an editor and its agent. Every line is inspected once: a line that policy does not concern is forwarded
 * unchanged, and a line that it does waits beside the stream until the log holds the decision. Data fails open, decisions fail
 * closed. This file only connects the parts.
 */
import {
  type Actor,
  asFault,
  type Bridge,
  type Ids,
  type JsonObject,
  type Logger,
  type OpenRelay,
  type PartContext,
} from '../../../src/index.ts';
import type { LineVerdict } from '../../../src/transport/ndjson/byte-lines.ts';
import { type ClientProfile, profileOf } from '../server/client-profile.ts';
import { listOf, numberOf, objectOf, textOf, within } from '../shapes.ts';
import { createQuestions } from './editor-view/questions.ts';
import type { Frame, Request } from './frames/frame.ts';
import { encode, encodeError } from './frames/frame.ts';
import { createPassing } from './frames/passthrough.ts';
import { createWires, type Wires } from './frames/pending.ts';
import { agentGoneError } from './frames/refusals.ts';
import { createRefusedFrames } from './frames/refused-frames.ts';
import { createApprovals } from './from-agent/approved-acts.ts';
import { createElicitations } from './from-agent/elicit.ts';
import { createExtensions } from './from-agent/extension.ts';
import { createFromAgent } from './from-agent/from-agent.ts';
import { createHeld } from './from-agent/held-acts.ts';
import { createHitl } from './from-agent/hitl.ts';
import { createLate } from './from-agent/late-updates.ts';
import { createPermissions } from './from-agent/permission.ts';
import { createTerminals } from './from-agent/terminals.ts';
import { createFromEditor } from './from-editor/from-editor.ts';
import { createPrompts } from './from-editor/prompts.ts';
import { createRestoredSessions } from './from-editor/restored-sessions.ts';
import { createSessionKeys } from './from-editor/session-keys.ts';
import { createSessions } from './from-editor/sessions.ts';
import { createStall } from './from-editor/stall-detector.ts';
import { createTurns, type Turn, type Turns } from './from-editor/turns.ts';
import { createWorkOfOthers } from './from-editor/work-of-others.ts';
import { createWrappedAgent, type WrappedAgent } from './from-editor/wrapped-agent.ts';
import type { Looker, RelayLink } from './link.ts';
import { gatewayToolServers, type RelayConfig, type RelaySettings, relaySettings } from './settings.ts';

export interface RelayDeps {
  readonly bridge: Bridge;
  /** The person at the editor. */
  readonly person: Actor;
  /** The agent's name in rules and in the log. */
  readonly name: string;
  readonly turns: Turns;
  /** The agent as a backend: other clients may give it work too. */
  readonly agent: Pick<WrappedAgent, 'foreign'>;
  readonly wires: Wires;
  readonly settings: RelaySettings;
  readonly log: Logger;
  readonly ids: Ids;
}

export interface LinkRelay extends Looker, OpenRelay {}

/** The relay's part: the wrapped agent for the runtime, and the relay itself once there is a bridge and a link. */
export function acpRelay(config: RelayConfig, { name, log, ids, secret }: PartContext) {
  const settings = relaySettings(config);
  const agent = createWrappedAgent(name);
  return {
    backend: agent.backend,
    graceMs: settings.cancelMs,
    async attach(bridge: Bridge, person: Actor, link: RelayLink): Promise<OpenRelay> {
      const mcpServers = await gatewayToolServers(config, secret);
      const turns = createTurns({ bridge, agent, name, log, thoughts: settings.thoughts });
      const wires = createWires(link.editor, link.agent);
      const relay = createRelay({
        bridge,
        person,
        name,
        turns,
        agent,
        wires,
        settings: { ...settings, mcpServers },
        log,
        ids,
      });
      link.attach(relay);
      return relay;
    },
  };
}

export function createRelay(deps: RelayDeps): LinkRelay {
  const { bridge, person, name, turns, wires, settings, log, ids } = deps;
  const agreed = {
    version: 1,
    http: false,
    agent: name,
    forms: false,
    load: true,
    resume: true,
    can: {} as JsonObject,
  };
  let editor: ClientProfile = profileOf({}, { harn: 'auto' });

  function greeted({ message }: Request): void {
    editor = profileOf(objectOf(message.params) ?? {}, { harn: 'auto' });
    agreed.forms = objectOf(within(message, 'params', 'clientCapabilities', 'elicitation', 'form')) !== undefined;
  }

  function initialized(result: unknown): void {
    agreed.version = numberOf(within(result, 'protocolVersion')) ?? agreed.version;
    // The agent's name for itself selects how its arguments are read; ours is the program's.
    agreed.agent =
      textOf(within(result, 'agentInfo', 'name')) ?? textOf(within(result, 'info', 'name')) ?? agreed.agent;
    // Only the first version of the wire says so here; a session of the second is the agent's to restore, as is every session without additions.
    const can = within(result, 'agentCapabilities');
    const first = agreed.version === 1;
    agreed.can = objectOf(can) ?? {};
    const own = !first || !settings.additions;
    agreed.load = own || within(can, 'loadSession') === true;
    agreed.resume = own || objectOf(within(can, 'sessionCapabilities', 'resume')) !== undefined;
    const second = objectOf(within(result, 'capabilities', 'session', 'mcp', 'http'));
    agreed.http = within(result, 'agentCapabilities', 'mcpCapabilities', 'http') === true || second !== undefined;
  }

  /** Sends the cancel to the agent, unless the editor has. */
  function stop(turn: Turn): void {
    if (turn.canceled) return;
    turn.canceled = 'by_us';
    const params = { sessionId: turn.sessionKey.wireId };
    wires.agent.send(encode({ jsonrpc: '2.0', method: 'session/cancel', params }));
  }

  function cancelTask(turn: Turn, reason: string): void {
    turn.task
      .then((task_id) => bridge.submit({ kind: 'task.cancel', actor: person, body: { task_id, reason } }))
      .catch((cause) => log.info({ err: asFault(cause) }, 'there was nothing left to cancel'));
  }

  const others = createWorkOfOthers({ bridge, person, name, log });
  const sessionKeys = createSessionKeys({
    bridge,
    person,
    name,
    cwd: settings.cwd,
    persona: settings.persona,
    opened: others.watch,
  });
  const approvals = createApprovals(person);
  const questions = createQuestions({
    bridge,
    person,
    wires,
    log,
    covering: (turn, { tool, server, arguments: args }) =>
      tool ? approvals.covering(turn)({ operation: 'call', tool, server, arguments: args }) : undefined,
  });
  const passing = createPassing({ bridge, sessionKeys, log, cwd: settings.cwd });
  const late = createLate(passing);
  const agent = () => agreed.agent;
  const refused = createRefusedFrames({ wires, turns, sessionKeys, log });
  const extension = createExtensions({ wires, questions, ids, agent });
  const held = createHeld({ wires, questions, approvals, ids, agent });
  const terminals = createTerminals({ wires, held, approvals, blocked: settings.blockedTerminal });
  const { standingGrants, additions } = settings;
  const permission = createPermissions({ wires, questions, approvals, standingGrants, additions, agent });
  const hitl = createHitl({ bridge, person, wires, questions, log, agent, shows: () => editor.harn });
  const elicit = createElicitations({ wires, questions, ids });
  const mcpServers = () => settings.mcpServers.filter(({ http }) => !http || agreed.http);
  const version = () => agreed.version;
  const restores = () => ({ load: agreed.load, resume: agreed.resume, log: settings.additions });
  const restored = createRestoredSessions({
    bridge,
    person,
    wires,
    client: () => editor,
    restores,
    servers(request, sessionId) {
      const { sessionId: _, ...params } = objectOf(request.message.params) ?? {};
      const ours = mcpServers().map((server) => server.toWire(sessionId));
      return { ...params, mcpServers: [...listOf(params.mcpServers), ...ours] };
    },
  });
  const shared = {
    bridge,
    person,
    name,
    ids,
    log,
    wires,
    turns,
    questions,
    sessionKeys,
    passing,
    extension,
    hitl,
    refused,
    stop,
    cancelTask,
    version,
  };
  const watch = createStall({
    wires,
    name,
    stallMs: settings.stallMs,
    stalled(turn, message) {
      log.warn({ session: turn.sessionKey.sessionId }, message);
      stop(turn);
      prompts.abandon(turn, { code: 'upstream_unavailable', message });
    },
  });
  const prompts = createPrompts({
    ...shared,
    can: () => agreed.can,
    history: restored.history,
    watch,
    ending: (turn) => terminals.ended(turn),
  });
  const sessions = createSessions({ ...shared, mcpServers, restores, restored, forms: () => agreed.forms });
  deps.agent.foreign(prompts.foreign);
  const fromEditor = createFromEditor({ ...shared, prompts, sessions, additions, initialized, greeted });
  const fromAgent = createFromAgent({ ...shared, prompts, held, terminals, late, permission, elicit });

  /** Earlier updates and acts are in the log before the end is. */
  async function endAll(end: (turn: Turn, summary: string) => void): Promise<void> {
    others.close();
    const open = turns.all();
    await Promise.all(
      open.map(async (turn) => {
        await held.settled(turn);
        await terminals.ended(turn);
        const summary = await (turn.live?.recorder.finish(null) ?? Promise.resolve('')).catch(() => '');
        end(turn, summary);
        await turn.over;
      }),
    );
    await refused.close();
    await late.close();
  }

  /** A frame on which our own code throws is treated as unreadable: it does not cross, and the relay continues. */
  const guarded =
    (side: 'editor' | 'agent', look: (frame: Frame) => LineVerdict) =>
    (frame: Frame): LineVerdict => {
      const unread = (cause: unknown) => {
        log.error({ err: cause }, 'a frame could not be looked at');
        refused.refuse(side, frame, 'the frame could not be read');
      };
      try {
        const verdict = look(frame);
        if (verdict === true) return true;
        return () => {
          try {
            verdict();
          } catch (cause) {
            unread(cause);
          }
        };
      } catch (cause) {
        return () => unread(cause);
      }
    };

  return {
    fromEditor: guarded('editor', fromEditor.look),
    fromAgent: guarded('agent', (frame) => {
      const seen = wires.aliases.fromAgent(frame);
      const verdict = fromAgent.look(seen);
      return verdict === true && seen !== frame ? () => wires.editor.send(seen.line) : verdict;
    }),
    runOn: fromAgent.runOn,
    early(request, answer) {
      void passing.note(request, person);
      greeted(request);
      if (answer) initialized(answer.message.result);
      else fromEditor.greeted(request);
    },
    earlyFrames: (frames, missed) => void fromAgent.early(frames, missed),
    async editorGone() {
      wires.gone('editor', new Error('the editor has gone'));
      sessions.gone('the editor has gone');
      await endAll((turn) => {
        turn.canceled = 'by_editor';
        cancelTask(turn, 'the editor has gone');
        turn.finish({ state: 'CANCELED' });
      });
    },
    async agentGone(why) {
      wires.gone('agent', new Error(why));
      sessions.gone(why);
      const failure = { code: 'upstream_unavailable', message: why };
      await endAll((turn, summary) => turn.finish({ state: 'FAILED', failure, ...(summary && { summary }) }));
      for (const { id } of wires.calls.all()) {
        wires.calls.forget(id);
        wires.editor.send(encodeError(id, agentGoneError(why)));
      }
    },
  };
}
