/**
 * Parses one line, within bounds and leniently: a lone surrogate is replaced and a number beyond the range of doubles becomes a
 * text, because neither could be recorded and hashed.
 */
import { asFault, asText } from '../../src/index.ts';
import { type JsonLimits, parseJson } from '../../src/transport/http/body.ts';
import { LINE_LIMIT } from './config.ts';

const LIMITS: JsonLimits = { bytes: LINE_LIMIT, depth: 100, values: 500_000 };

/** Undefined when it is not JSON, or exceeds the bounds. */
export function parseFrame(text: string): unknown {
  try {
    return parseJson(Buffer.from(text), LIMITS);
  } catch (thrown) {
    if (asFault(thrown).kind !== 'invalid_request') return undefined;
  }
  try {
    return softened(JSON.parse(text));
  } catch {
    return undefined;
  }
}

function softened(value: unknown): unknown {
  if (typeof value === 'string') return wellFormed(value);
  if (typeof value === 'number') return Number.isFinite(value) ? value : asText(value);
  if (Array.isArray(value)) return value.map(softened);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [wellFormed(name), softened(member)]));
}

function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, '\ufffd');
}
