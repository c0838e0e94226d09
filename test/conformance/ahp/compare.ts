/** Whether an answer is the recorded one: codes, decision words and shapes, not wording, ids of ours or times. */
import { decisionShapes, payloadShapes, shapes } from '../../../adapters/ahp/shapes.ts';
import { DIFFERENCES, type Difference, expectDecision } from './differences.ts';

// biome-ignore lint/suspicious/noExplicitAny: frames are looked into freely
type Frame = any;

/** Which deliberate differences were met, for the table at the end. */
export const met = new Map<Difference, string[]>();

export function expectAnswer(name: string, sent: Frame, recorded: Frame, came: Frame): void {
  const difference = DIFFERENCES.find((candidate) => candidate.applies(sent, recorded));
  if (difference) {
    difference.instead(came, sent);
    met.set(difference, [...(met.get(difference) ?? []), name]);
    return;
  }
  same(sent, recorded ?? undefined, came);
}

function same(sent: Frame, recorded: Frame, came: Frame): void {
  if (recorded === undefined || came === undefined) {
    if (recorded !== came) throw new Error(`${JSON.stringify(came)} instead of ${JSON.stringify(recorded)}`);
    return;
  }
  if (came.jsonrpc !== '2.0' || came.id !== recorded.id) throw new Error(`answered under ${JSON.stringify(came.id)}`);
  if (recorded.error) {
    if (came.error?.code !== recorded.error.code || typeof came.error.message !== 'string') {
      throw new Error(`${JSON.stringify(came)} instead of error ${recorded.error.code}`);
    }
    return;
  }
  sameResult(sent, recorded.result, came.result);
}

function sameResult(sent: Frame, recorded: Frame, came: Frame): void {
  switch (sent.method) {
    case 'ahp/handshake': {
      shapes.HandshakeResponse(came);
      equal(came.protocol_version, recorded.protocol_version);
      equal(came.config, recorded.config);
      for (const word of recorded.harness_info.capabilities) {
        if (!came.harness_info.capabilities.includes(word)) throw new Error(`does not offer ${word}`);
      }
      return;
    }
    case 'ahp/batch':
      equal(came.decisions?.length, recorded.decisions.length);
      came.decisions.forEach((decision: Frame, index: number) => {
        decisionShapes.generic(decision);
        equal(decision.decision, recorded.decisions[index].decision);
      });
      return;
    case 'ahp/event':
      expectDecision(came, sent.params.event_type);
      equal(came.decision, recorded.decision);
      return;
    default:
      shapes.QueryResponse(came);
  }
}

export function equal(came: Frame, wanted: Frame): void {
  const [a, b] = [spelled(came), spelled(wanted)];
  if (a !== b) throw new Error(`${a} instead of ${b}`);
}

/** Keys have no order, and confidences are kept in 32 bits on the other side. */
function spelled(value: Frame): string {
  if (Array.isArray(value)) return `[${value.map(spelled).join(',')}]`;
  if (typeof value === 'number') return String(Math.fround(value));
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'nothing';
  const keys = Object.keys(value).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${spelled(value[key])}`).join(',')}}`;
}

/** The decoder for one of the protocol's types, by its name there. */
export function shapeOf(type: string): (value: unknown) => unknown {
  const snake = (text: string) => text.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toLowerCase();
  const named = (shapes as Record<string, (value: unknown) => unknown>)[type];
  const decision = type === 'Decision' ? 'generic' : snake(type.replace(/Decision$/, ''));
  const found =
    named ??
    (type.endsWith('Decision')
      ? decisionShapes[decision as keyof typeof decisionShapes]
      : payloadShapes[snake(type.replace(/Event$/, '')) as keyof typeof payloadShapes]);
  if (!found) throw new Error(`there is no type ${type} here`);
  return found;
}
