/**
 * The era in which a server is addressed, chosen for each caller: in the caller's own where the server speaks it, so that nothing is
 * converted that need not be. A legacy caller keeps questions that a server asks while a call runs; a modern caller has no session.
 */
import { type Era, frames } from '../../../mappings/mcp.ts';
import { type Clock, type JsonObject, own } from '../../../src/index.ts';
import type { McpRequestContext, SessionContext } from '../request-context.ts';
import { type DetectedEra, findEra } from './detect-era.ts';
import type { Transport } from './transport/create-transport.ts';

export interface Eras {
  /** The era for requests of this caller, if it is known without asking the server. */
  known(context: McpRequestContext): Era | undefined;
  of(context: McpRequestContext): Era | Promise<Era>;
  /** The era for requests of the gateway's own: the modern one where the server speaks it, because it needs no session. */
  own(): Era | Promise<Era>;
  /** The server has refused to open a session. True when it speaks only the modern era: this caller is served in that one. */
  refused(context: McpRequestContext): Promise<boolean>;
  /** The connection on which the era was detected; taken by the first that asks. */
  spare(): DetectedEra['spare'];
  /** Resolves when no detection is under way. */
  settled(): Promise<unknown>;
}

/** After this time a server over HTTP may have been replaced by one of the other era. */
const BELIEVED_MS = 10 * 60_000;

export function createEras(
  transport: Transport,
  { era: configured, share }: { readonly era: Era | 'auto'; readonly share: boolean },
  clock: Clock,
): Eras {
  const fixed = configured === 'auto' ? undefined : configured;
  /** A session stays in the era it began in. */
  const sessions = new WeakMap<SessionContext, Era>();
  let verdict: { found: Promise<DetectedEra>; until: number } | undefined;
  let settled = fixed;
  let spare: DetectedEra['spare'];
  /** Until when the server is believed to speak no legacy era. */
  let modernOnly = 0;

  const now = () => Date.parse(clock.now());

  function own(): Era | Promise<Era> {
    if (settled) return settled;
    if (!verdict || now() > verdict.until) {
      const found = findEra(transport);
      const fresh = { found, until: Number.POSITIVE_INFINITY };
      verdict = fresh;
      found.then(
        (said) => {
          if (said.spare) spare = said.spare;
          if (said.era === 'legacy' && transport.kind === 'http') fresh.until = now() + BELIEVED_MS;
          else settled = said.era;
        },
        () => {
          if (verdict === fresh) verdict = undefined;
        },
      );
    }
    return verdict.found.then(({ era }) => era);
  }

  function known(context: McpRequestContext): Era | undefined {
    const { session } = context;
    if (fixed || context.era === 'modern' || !session) return settled;
    const before = sessions.get(session);
    if (before) return before;
    // A session costs a program of its own. A caller that can be asked nothing loses nothing on the connection that others share.
    const shares = settled === 'modern' && transport.kind === 'stdio' && (share || !canBeAsked(context.capabilities));
    const era = shares || now() < modernOnly ? 'modern' : 'legacy';
    sessions.set(session, era);
    return era;
  }

  return {
    own,
    known,
    of: (context) => known(context) ?? own(),
    async refused({ session }) {
      if (fixed || !session || (await own()) !== 'modern') return false;
      modernOnly = now() + BELIEVED_MS;
      sessions.set(session, 'modern');
      return true;
    },
    spare() {
      const left = spare;
      spare = undefined;
      return left;
    },
    settled: async () => await verdict?.found.catch(() => {}),
  };
}

function canBeAsked(capabilities: JsonObject): boolean {
  return frames.rows.some(({ capability }) => capability !== undefined && own(capabilities, capability) !== undefined);
}
