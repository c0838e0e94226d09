/**
 * Events that an agent waits on, each submitted to the gate as an act and answered in the words of its family. Nothing here
 * allows by itself: an event that cannot be read, decided or recorded is refused.
 */

import { type EventType, eventRow, type Family } from '../../../../mappings/ahp.ts';
import { asFault, type Bridge, type Deps, type JsonObject } from '../../../../src/index.ts';
import type { AhpSettings } from '../../config.ts';
import { Misfit } from '../../decode.ts';
import { inTime } from '../../timeout.ts';
import { type AhpEvent, failed, type GateDecision, toWireRefusal, viaOf } from '../../translate.ts';
import type { Runs } from '../supervised-tasks.ts';
import { type Asker, createGateQuestions } from './ask-gate.ts';
import type { Authorizer } from './authorize.ts';
import { createCalls } from './calls.ts';
import { createTypedEvents } from './typed-events.ts';

interface Decider {
  /** Always an answer of the event's family, and always within the time limit. */
  decide(event: AhpEvent, asker: Asker): Promise<JsonObject>;
}

interface DeciderDeps {
  readonly bridge: Bridge;
  readonly runs: Runs;
  readonly authorizer: Authorizer;
  readonly settings: AhpSettings;
  readonly deps: Pick<Deps, 'log' | 'clock'>;
}

export function createDecider({ bridge, runs, authorizer, settings, deps }: DeciderDeps): Decider {
  const gate = createGateQuestions(bridge, runs, authorizer);
  const calls = createCalls({ gate, runs, settings, deps });
  const families = createTypedEvents({ bridge, gate, settings, deps });

  function answer(event: AhpEvent, asker: Asker): Promise<JsonObject> {
    const family = familyOf(event.event_type);
    if (family !== 'generic') return families[family](event, asker);
    return event.event_type === 'pre_prompt' ? calls.prePrompt(event, asker) : calls.preAction(event, asker);
  }

  return {
    async decide(event, asker) {
      const family = familyOf(event.event_type);
      if (viaOf(event.metadata).includes(settings.hop)) {
        return toWireRefusal(
          family,
          failed(`${settings.hop} is asked about its own question: harnesses go in a circle`),
        );
      }
      const answered = answer(event, asker).catch((cause) => {
        if (!(cause instanceof Misfit) && asFault(cause).kind === 'internal') {
          deps.log.error({ err: cause, event: event.event_type }, 'a question of an agent failed');
        }
        return toWireRefusal(family, whyNot(cause));
      });
      const first = await inTime(answered, asker.timeout.until, LAST_WORD_MS);
      if (first !== 'late') return first;
      answered
        .then((said) => calls.tooLate(event, asker, said))
        .catch((cause) => deps.log.error({ err: cause }, 'what came of a late decision could not be written down'));
      return toWireRefusal(family, failed('it was not decided in time'));
    },
  };
}

/** The longest extra look-up of an open question after the time is up. */
const LAST_WORD_MS = 250;

function familyOf(type: EventType): Family {
  return eventRow(type).answer ?? 'generic';
}

function whyNot(cause: unknown): GateDecision {
  if (cause instanceof Misfit) return failed(`the payload cannot be read: ${cause.message}`);
  const fault = asFault(cause);
  switch (fault.kind) {
    case 'policy_violation':
      return { verdict: 'block', reason: fault.message };
    case 'rate_limited':
      return { verdict: 'defer', reason: fault.message, retry_after_ms: Number(fault.details?.retry_after_ms ?? 1000) };
    case 'conflict':
    case 'permission_denied':
    case 'not_found':
      return failed(fault.message);
    case 'unavailable':
      return failed('decisions cannot be written down now, so nothing is let through');
    default:
      return failed('it could not be decided');
  }
}
