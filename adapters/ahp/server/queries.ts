/** Free-text questions of an agent (`ahp/query`). Rules answer yes or no; a person, when a rule asks one, may answer anything. */
import { type Actor, asFault, isObject, type Json, type JsonObject } from '../../../src/index.ts';
import { inTime } from '../timeout.ts';
import { type AhpEvent, viaOf } from '../translate.ts';
import type { Authorizer, HoldTimeout } from './decide/authorize.ts';
import { openingOf } from './event-members.ts';
import type { Runs } from './supervised-tasks.ts';

export type Query = {
  readonly session_id: string;
  readonly agent_id: string;
  readonly query_type: string;
  readonly payload: Json;
  readonly metadata?: Json;
};

export interface Queries {
  answer(query: Query, actor: Actor, timeout: HoldTimeout): Promise<JsonObject>;
}

export interface QueryDeps {
  readonly runs: Runs;
  readonly authorizer: Authorizer;
  readonly hop: string;
}

export function createQueries({ runs, authorizer, hop }: QueryDeps): Queries {
  return {
    async answer(query, actor, timeout) {
      if (viaIn(query).includes(hop)) {
        return { answer: 'no', reason: `${hop} is asked about its own question: harnesses go in a circle` };
      }
      const answered = ask(query, actor, timeout).catch((cause) => {
        const fault = asFault(cause);
        return { answer: 'no', reason: fault.kind === 'internal' ? 'it could not be decided' : fault.message };
      });
      const first = await inTime(answered, timeout.until, LAST_WORD_MS);
      return first === 'late' ? { answer: 'no', reason: 'it was not decided in time' } : first;
    },
  };

  async function ask(query: Query, actor: Actor, timeout: HoldTimeout) {
    const { session_id, agent_id, query_type, payload } = query;
    const via = viaIn(query);
    const location = { session_id, agent_id, depth: 0 };
    const first = { ...location, event_type: 'query', timestamp: '', payload } as AhpEvent;
    const run = await runs.caughtUp(actor, location, () => openingOf(first, undefined));
    const { gateDecision, value } = await authorizer.ask(
      actor,
      run,
      {
        action: {
          kind: 'query',
          tool: query_type || 'query',
          server: 'ahp',
          arguments: isObject(payload) ? payload : { payload },
          effect: 'none',
          evidence: 'asked',
          attributes: { agent_id, ...(via.length > 0 && { via }) },
        },
        takesArguments: false,
      },
      timeout,
    );
    if (value !== undefined) return { answer: value, reason: gateDecision.reason };
    switch (gateDecision.verdict) {
      case 'allow':
        return { answer: 'yes', reason: gateDecision.reason };
      case 'defer':
      case 'escalate':
        return { answer: 'no', reason: `not yet: ${gateDecision.reason}`, alternatives: ['ask again later'] };
      default:
        return { answer: 'no', reason: gateDecision.reason };
    }
  }
}
const LAST_WORD_MS = 250;

function viaIn({ metadata }: Query): readonly string[] {
  return viaOf(isObject(metadata) ? metadata : undefined);
}
