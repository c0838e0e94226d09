/**
 * Editor and agent with us in between. Every line is looked at once: what policy has nothing to say about goes on as it came,
 * and what it has waits beside the stream until the log holds the decision. Data fails open, decisions fail closed.
 * This file only joins the parts.
 */
import { type Actor, asFault, type Bridge, type Ids, type Logger } from '../../../src/index.ts';
import type { LineVerdict } from '../../../src/wire/byte-lines.ts';
import { numberOf, objectOf, textOf, within } from '../shapes.ts';
import { createApprovals } from './approvals.ts';
import { createElicitations } from './elicit.ts';
import { createExtensions } from './extension.ts';
import type { Frame } from './frame.ts';
import { encode, encodeError } from './frame.ts';
import { createFromAgent } from './from-agent.ts';
import { createFromEditor } from './from-editor.ts';
import { createHeld } from './held.ts';
import { createLate } from './late.ts';
import type { Looker } from './link.ts';
import { createPassing } from './passing.ts';
import { createPermissions } from './permission.ts';
import { createPlaces } from './places.ts';
import { createPrompts } from './prompts.ts';
import { createQuestions } from './questions.ts';
import { agentGoneError } from './refusals.ts';
import { createRefusedFrames } from './refused-frames.ts';
import { createSessions } from './sessions.ts';
import type { RelaySettings } from './settings.ts';
import { createStall } from './stall.ts';
import { createTerminals } from './terminals.ts';
import type { Turn, Turns } from './turns.ts';
import type { Wires } from './wires.ts';

export interface RelayDeps {
  readonly bridge: Bridge;
  /** Whoever sits at the editor. */
  readonly person: Actor;
  /** The agent, as rules and the log call it. */
  readonly name: string;
  readonly turns: Turns;
  readonly wires: Wires;
  readonly settings: RelaySettings;
  readonly log: Logger;
  readonly ids: Ids;
}

export interface Relay extends Looker {
  /** Resolve when every turn has its end in the log. */
  editorGone(): Promise<void>;
  agentGone(why: string): Promise<void>;
}

export function createRelay(deps: RelayDeps): Relay {
  const { bridge, person, name, turns, wires, settings, log, ids } = deps;
  const agreed = { version: 1, http: false, agent: name };

  function initialized(result: unknown): void {
    agreed.version = numberOf(within(result, 'protocolVersion')) ?? agreed.version;
    // The agent's own name for itself chooses how its arguments are read; ours is the program's.
    agreed.agent =
      textOf(within(result, 'agentInfo', 'name')) ?? textOf(within(result, 'info', 'name')) ?? agreed.agent;
    const second = objectOf(within(result, 'capabilities', 'session', 'mcp', 'http'));
    agreed.http = within(result, 'agentCapabilities', 'mcpCapabilities', 'http') === true || second !== undefined;
  }

  /** Tells the agent, unless the editor has. */
  function stop(turn: Turn): void {
    if (turn.canceled) return;
    turn.canceled = 'by_us';
    const params = { sessionId: turn.place.wireId };
    wires.agent.send(encode({ jsonrpc: '2.0', method: 'session/cancel', params }));
  }

  function cancelTask(turn: Turn, reason: string): void {
    turn.task
      .then((task_id) => bridge.submit({ kind: 'task.cancel', actor: person, body: { task_id, reason } }))
      .catch((cause) => log.info({ err: asFault(cause) }, 'there was nothing left to cancel'));
  }

  const places = createPlaces({ bridge, person, name, cwd: settings.cwd, persona: settings.persona });
  const questions = createQuestions({ bridge, person, wires, log });
  const approvals = createApprovals(person);
  const passing = createPassing({ bridge, places, log, cwd: settings.cwd });
  const late = createLate(passing);
  const agent = () => agreed.agent;
  const refused = createRefusedFrames({ wires, turns, places, log });
  const extension = createExtensions({ wires, questions, ids, agent });
  const held = createHeld({ wires, questions, approvals, ids, agent });
  const terminals = createTerminals({ wires, held, approvals, blocked: settings.blockedTerminal });
  const permission = createPermissions({ wires, questions, approvals, standingGrants: settings.standingGrants, agent });
  const elicit = createElicitations({ wires, questions, ids });
  const offer = () => settings.mcpServers.filter(({ http }) => !http || agreed.http);
  const version = () => agreed.version;
  const shared = {
    bridge,
    person,
    name,
    ids,
    log,
    wires,
    turns,
    questions,
    places,
    passing,
    extension,
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
      log.warn({ session: turn.place.sessionId }, message);
      stop(turn);
      prompts.abandon(turn, { code: 'upstream_unavailable', message });
    },
  });
  const prompts = createPrompts({ ...shared, watch, ending: (turn) => terminals.ended(turn) });
  const sessions = createSessions({ ...shared, offer });
  const fromEditor = createFromEditor({ ...shared, prompts, sessions, initialized });
  const fromAgent = createFromAgent({ ...shared, prompts, held, terminals, late, permission, elicit });

  async function endAll(end: (turn: Turn) => void): Promise<void> {
    const open = turns.all();
    for (const turn of open) {
      terminals.ended(turn);
      end(turn);
    }
    await Promise.all(open.map(({ over }) => over));
    await refused.close();
    await late.close();
  }

  /** A frame that breaks our reading of it has not been read: it does not cross, and the relay goes on. */
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
    fromAgent: guarded('agent', fromAgent.look),
    runOn: fromAgent.runOn,
    early(request, answer) {
      void passing.note(request, person);
      if (answer) initialized(answer.message.result);
      else fromEditor.greeted(request);
    },
    earlyTold: (frames, missed) => void fromAgent.early(frames, missed),
    async editorGone() {
      wires.gone('editor', new Error('the editor has gone'));
      await endAll((turn) => {
        turn.canceled = 'by_editor';
        cancelTask(turn, 'the editor has gone');
        turn.finish({ state: 'CANCELED' });
      });
    },
    async agentGone(why) {
      wires.gone('agent', new Error(why));
      const failure = { code: 'upstream_unavailable', message: why };
      await endAll((turn) => turn.finish({ state: 'FAILED', failure }));
      for (const { id } of wires.calls.all()) {
        wires.calls.forget(id);
        wires.editor.send(encodeError(id, agentGoneError(why)));
      }
    },
  };
}
