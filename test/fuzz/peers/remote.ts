/**
 * Work given to fuzzed peers, lane after lane, and what must be true of each task: it ends, with a reason where it failed, and a
 * peer never hears a yes, or work, that the log had not allowed with exactly those arguments before.
 */

import type { JsonObject } from '../../../src/model/schema.ts';
import type { AgentBackend, Deps } from '../../../src/ports/index.ts';
import { type Fuzzed, type FuzzGateway, OWNER, openGateway } from '../gateway.ts';
import { type Asked, openFuzzedPeer, type Peer, type Question, randomOf, type Said } from './peer.ts';

export interface Away {
  /** How agents are configured; each has caches of its own, so several are used. */
  readonly agents: readonly string[];
  backend(name: string, url: string, deps: Pick<Deps, 'log' | 'clock' | 'secret' | 'http'>, own: string): AgentBackend;
  /** A sound peer. `see` notes the work it was given, `approved` a yes to a question of its. */
  peer(notes: Notes): (asked: Asked) => Said;
  /** Questions in a frame that was said about this work. */
  questionsIn(frame: unknown, about: string): readonly Question[];
}

export interface Notes {
  /** Work as the peer was given it: the text that came. Once for each piece of work. */
  see(agent: string, text: string): void;
  /** `key` names the answer: the same one again is the same yes. */
  approved(id: string, key: unknown): void;
  random(limit: number): number;
}

const LANES = 40;
const PER_SESSION = 4;
const ENDS_WITHIN_MS = 30_000;
const WORDS = ['yes', 'no', 'ask', 'other'];
const ENDS = new Set(['task.completed', 'task.failed', 'task.canceled']);

export async function fuzzAway(away: Away, { frames, seed }: { frames: number; seed: number }): Promise<Fuzzed> {
  const found: string[] = [];
  const crashed = (cause: unknown) => {
    found.push(`crashed: ${cause instanceof Error ? cause.stack : String(cause)}`);
  };
  process.on('unhandledRejection', crashed).on('uncaughtException', crashed);
  const random = randomOf(seed + 1);
  const pending: Promise<unknown>[] = [];
  const answers = new Set<unknown>();
  let gateway: FuzzGateway | undefined;
  let peer: Peer | undefined;
  const contact = (tool: string, args: JsonObject, or: readonly Question[] = []) => {
    if (gateway) pending.push(gateway.contact(tool, args, or));
  };
  const notes: Notes = {
    see: (agent, text) => contact(agent, { input: spoken(text) }),
    approved(id, key) {
      if (typeof key === 'string' && answers.has(key)) return;
      answers.add(key);
      const { variants, ambiguous } = peer?.asked(id) ?? { variants: [], ambiguous: false };
      const [first, ...more] = variants;
      if (!first)
        found.push(`a yes to a question that was ${ambiguous ? 'asked with two readings' : 'never asked'}: ${id}`);
      else contact(first.tool, first.arguments, more);
    },
    random,
  };
  peer = await openFuzzedPeer({ answer: away.peer(notes), questionsIn: away.questionsIn }, seed);
  const { url } = peer;
  gateway = await openGateway({
    async backends(deps) {
      const own = await (deps.http as unknown as { listen(): Promise<{ url: string }> }).listen();
      return away.agents.map((name) => away.backend(name, `${url}/${name}`, deps, own.url));
    },
  });
  try {
    const lanes = Array.from({ length: LANES }, (_, lane) => drive(gateway as FuzzGateway, peer as Peer, lane));
    await Promise.all(lanes);
    await peer.quiet();
    // Nothing is seen after this, so the oracle judges everything that was.
    await peer.close();
    await Promise.all(pending);
    // What has not ended will not: there is nothing to wait for then.
    if (found.length === 0) found.push(...(await gateway.verdict()));
    return { frames: peer.frames, violations: found };
  } finally {
    if (found.length === 0) await gateway.close();
    process.off('unhandledRejection', crashed).off('uncaughtException', crashed);
  }

  async function drive({ runtime, workspace }: FuzzGateway, to: Peer, lane: number): Promise<void> {
    const agent = away.agents[lane % away.agents.length] as string;
    let session: string | undefined;
    for (let count = 0; to.frames < frames && found.length < 20; count += 1) {
      const text = `${WORDS[random(WORDS.length)]} ${lane}.${count}`;
      if (count % PER_SESSION === 0) session = undefined;
      const home = session ? { session_id: session } : { session: { workspace_id: workspace } };
      const body = { ...home, agent, input: spoken(text) };
      const { resource } = await runtime.bridge.submit({ kind: 'task.submit', actor: OWNER, body } as never);
      const task = resource as unknown as { id: string; session_id: string };
      session = task.session_id;
      if (random(16) === 0) {
        const stop = { kind: 'task.cancel', actor: OWNER, body: { task_id: task.id, reason: 'enough' } } as const;
        setTimeout(() => runtime.bridge.submit(stop).catch(() => {}), random(200)).unref();
      }
      await ended(runtime, task.id, agent);
    }
  }

  async function ended(runtime: FuzzGateway['runtime'], id: string, agent: string): Promise<void> {
    const late = AbortSignal.timeout(ENDS_WITHIN_MS);
    try {
      for await (const { event } of runtime.bridge.follow(OWNER, { stream: { of: 'task', id } }, late)) {
        if (ENDS.has(event)) break;
      }
    } catch {}
    const task = (await runtime.bridge.view(OWNER, 'task', id)) as unknown as Ended;
    if (!TERMINAL.has(task.status)) found.push(`${agent}: ${id} is ${task.status} after ${ENDS_WITHIN_MS} ms`);
    else if (task.status === 'FAILED' && !(task.failure?.code && task.failure.message))
      found.push(`${agent}: ${id} failed without a reason: ${JSON.stringify(task.failure)}`);
  }
}

type Fuzz = (options: { frames: number; seed: number }) => Promise<Fuzzed>;

/** A peer says its frames a stream at a time, so that there may be a few more than were asked for. */
export async function bothDirections(toUs: Fuzz, away: Fuzz, { frames, seed }: Parameters<Fuzz>[0]): Promise<Fuzzed> {
  const half = Math.ceil(frames / 2);
  const one = await toUs({ frames: half, seed });
  const other = await away({ frames: frames - half, seed });
  return { frames: one.frames + other.frames, violations: [...one.violations, ...other.violations] };
}

interface Ended {
  readonly status: string;
  readonly failure?: { readonly code?: string; readonly message?: string } | null;
}
const TERMINAL = new Set(['COMPLETED', 'FAILED', 'CANCELED']);

function spoken(text: string): JsonObject {
  return { role: 'user', parts: [{ type: 'text', text, visibility: 'public' }] };
}
