/** Questions an agent asks in its own words. Rules say yes or no; a person, when a rule asks one, may say anything. */
import { type Actor, asFault, type Json, type JsonObject } from '../../src/index.ts';
import { openingOf } from './decide.ts';
import { isObject } from './decode.ts';
import { inTime } from './patience.ts';
import type { Patience, Rulings } from './rulings.ts';
import type { Runs } from './runs.ts';
import { type AhpEvent, viaOf } from './translate.ts';

export interface Query {
  readonly session_id: string;
  readonly agent_id: string;
  readonly query_type: string;
  readonly payload: Json;
  readonly metadata?: Json;
}

export interface Queries {
  answer(query: Query, actor: Actor, patience: Patience): Promise<JsonObject>;
}

export interface QueryDeps {
  readonly runs: Runs;
  readonly rulings: Rulings;
  readonly hop: string;
}

export function createQueries({ runs, rulings, hop }: QueryDeps): Queries {
  return {
    async answer(query, actor, patience) {
      if (viaIn(query).includes(hop)) {
        return { answer: 'no', reason: `${hop} is asked about its own question: harnesses go in a circle` };
      }
      const answered = ask(query, actor, patience).catch((cause) => {
        const fault = asFault(cause);
        return { answer: 'no', reason: fault.kind === 'internal' ? 'it could not be decided' : fault.message };
      });
      const first = await inTime(answered, patience.until, LAST_WORD_MS);
      return first === 'late' ? { answer: 'no', reason: 'it was not decided in time' } : first;
    },
  };

  async function ask(query: Query, actor: Actor, patience: Patience) {
    const { session_id, agent_id, query_type, payload } = query;
    const via = viaIn(query);
    const place = { session_id, agent_id, depth: 0 };
    const first = { ...place, event_type: 'query', timestamp: '', payload } as AhpEvent;
    const run = await runs.caughtUp(actor, place, () => openingOf(first, undefined));
    const { ruled, value } = await rulings.ask(
      actor,
      run,
      {
        action: {
          kind: 'query',
          tool: query_type || 'query',
          server: 'ahp',
          arguments: isObject(payload) ? (payload as JsonObject) : { payload },
          effect: 'none',
          evidence: 'asked',
          attributes: { agent_id, ...(via.length > 0 && { via }) },
        },
        takesArguments: false,
      },
      patience,
    );
    if (value !== undefined) return { answer: value, reason: ruled.reason };
    switch (ruled.verdict) {
      case 'allow':
        return { answer: 'yes', reason: ruled.reason };
      case 'defer':
      case 'escalate':
        return { answer: 'no', reason: `not yet: ${ruled.reason}`, alternatives: ['ask again later'] };
      default:
        return { answer: 'no', reason: ruled.reason };
    }
  }
}
const LAST_WORD_MS = 250;

function viaIn({ metadata }: Query): readonly string[] {
  return viaOf(isObject(metadata) ? (metadata as JsonObject) : undefined);
}
