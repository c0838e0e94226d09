/**
 * Any ACP agent as an agent of this gateway: one process per session, kept across its tasks and ended with it. Acts through us
 * are held, acts it asks about are asked, and everything else is its claim.
 */
import { fileURLToPath } from 'node:url';
import { type AgentBackend, Fault, type Json, type JsonObject, type Work } from '../../../src/index.ts';
import { type AcpBackendConfig, type BackendDeps, backendSettingsOf } from '../config.ts';
import { objectOf } from '../shapes.ts';
import { type AgentProcess, type AgentProcessOptions, startAgentProcess } from './agent-process.ts';
import { rememberedSession } from './prompt.ts';
import { runTask } from './run.ts';

interface Slot {
  agentProcess: Promise<AgentProcess>;
  idle: NodeJS.Timeout | undefined;
  busy: number;
}

export function acpBackend(
  name: string,
  config: AcpBackendConfig,
  deps: BackendDeps,
  start?: AgentProcessOptions['start'],
): AgentBackend {
  const settings = backendSettingsOf(name, config);
  const slots = new Map<string, Slot>();
  const ending = new Set<Promise<void>>();
  let closed = false;

  /** The process of this session, started when there is none or the last one has exited. */
  function slotFor(work: Work, signal: AbortSignal): Slot {
    const known = slots.get(work.session.id);
    if (known) return known;
    const agentProcess = (async () => {
      const before = await rememberedSession(work, name);
      const session = work.session.id;
      return await startAgentProcess({
        settings,
        deps,
        cwd: directoryOf(work),
        session,
        before,
        signal,
        ...(start && { start }),
      });
    })();
    const slot: Slot = { agentProcess, idle: undefined, busy: 0 };
    slots.set(work.session.id, slot);
    agentProcess.then(
      ({ peer }) => peer.over.addEventListener('abort', () => leave(work.session.id, slot), { once: true }),
      () => leave(work.session.id, slot),
    );
    return slot;
  }

  /** Takes a process out of use and waits for its end. */
  function leave(sessionId: string, slot: Slot): Promise<void> {
    if (slots.get(sessionId) === slot) slots.delete(sessionId);
    clearTimeout(slot.idle);
    const end = slot.agentProcess
      .then((agentProcess) => agentProcess.close())
      .catch((cause) => {
        if (cause instanceof Fault && cause.kind === 'internal')
          deps.log.error({ err: cause, agent: name }, cause.message);
      })
      .finally(() => ending.delete(end));
    ending.add(end);
    return end;
  }

  function directoryOf({ workspace }: Work): string {
    if (settings.cwd) return settings.cwd;
    const root = workspace?.root ?? '';
    if (root.startsWith('file:')) return fileURLToPath(root);
    const where = root ? `its root is ${root}` : 'it has no root';
    throw new Fault(
      'upstream_unavailable',
      `the workspace is no directory here (${where}): set agents.${name}.acp.cwd`,
    );
  }

  async function work(...[taskWork, sink, signal]: Parameters<AgentBackend['start']>) {
    if (closed) throw new Fault('unavailable', `the agent ${name} is being closed`);
    const sessionId = taskWork.session.id;
    const slot = slotFor(taskWork, signal);
    slot.busy += 1;
    clearTimeout(slot.idle);
    try {
      const agentProcess = await slot.agentProcess;
      remember(agentProcess.catalog);
      return await runTask({ settings, deps, work: taskWork, sink, signal, agentProcess });
    } finally {
      slot.busy -= 1;
      if (slot.busy === 0 && slots.get(sessionId) === slot) {
        slot.idle = setTimeout(() => void leave(sessionId, slot), settings.idleMs).unref();
      }
    }
  }

  /** The agent's description of itself, filled in once it is known. */
  const about: { description?: string; catalog?: JsonObject } = config.description
    ? { description: config.description }
    : {};
  function remember(catalog: Json | undefined): void {
    const reported = objectOf(catalog);
    if (reported) about.catalog = reported;
  }

  return {
    name,
    abilities: { resume: false, evidence: 'observed' },
    about,
    async start(...args) {
      return { done: work(...args) };
    },
    async release(sessionId) {
      const slot = slots.get(sessionId);
      if (slot) await leave(sessionId, slot);
    },
    async close() {
      closed = true;
      for (const [sessionId, slot] of [...slots]) void leave(sessionId, slot);
      await Promise.all([...ending]);
    },
  };
}
