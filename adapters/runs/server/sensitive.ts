/**
 * Removes sensitive values: by tag (masked or dropped) and by the name of their key. Runs before anything reaches the bridge, so
 * that no later component can disclose them. A masked value is replaced by a keyed digest.
 */
import {
  assumedClass,
  CLASSIFICATIONS,
  type Classification,
  isSensitiveKey,
  REDACTIONS,
} from '../../../mappings/runs.ts';
import { isObject, type Json, type JsonObject } from '../../../src/index.ts';
import { RunsRefusal } from './refusal.ts';

export interface Tag {
  readonly path: readonly (string | number)[];
  readonly shown: string;
  readonly classification: Classification;
  readonly redaction: 'mask' | 'drop';
  readonly retention_hint_days?: number;
}

/** `field` is the path without `$.`; `reason` names the class and what was done. */
export interface Mark {
  readonly field: string;
  readonly reason: string;
}

/** Dotted names and `[n]`, below `$.input` or `$.metadata`: the whole path dialect as one pattern. */
const PATH = /^\$\.(?:input|metadata)(?:\.[A-Za-z_$][\w$-]*|\[\d{1,9}\])*$/;
const STEP = /\.([A-Za-z_$][\w$-]*)|\[(\d{1,9})\]/g;

export function readPath(path: string): readonly (string | number)[] | undefined {
  if (!PATH.test(path)) return undefined;
  return [...path.slice(1).matchAll(STEP)].map(([, name, index]) => name ?? Number(index));
}

/** Checked in the order callers rely on: every path, then every classification, then duplicates. */
export function readTags(value: Json | undefined): readonly Tag[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw new RunsRefusal('INPUT_PAYLOAD_INVALID', 'sensitivity_tags must be a list');
  const tags = value.map((tag: Json) => {
    if (!isObject(tag)) throw new RunsRefusal('INPUT_PAYLOAD_INVALID', 'a sensitivity tag must be an object');
    return tag;
  });
  const paths = tags.map(({ path }) => {
    const read = typeof path === 'string' ? readPath(path) : undefined;
    if (!read) throw new RunsRefusal('INPUT_SENSITIVITY_TAG_INVALID_PATH');
    return read;
  });
  const read = tags.map((tag, at) => toTag(tag, paths[at] ?? []));
  if (new Set(read.map(({ path }) => JSON.stringify(path))).size < read.length) {
    throw new RunsRefusal('INPUT_SENSITIVITY_TAG_DUPLICATE_PATH');
  }
  return read;
}

function toTag(tag: JsonObject, path: Tag['path']): Tag {
  const classification = CLASSIFICATIONS.find((word) => word === tag.classification);
  if (!classification) throw new RunsRefusal('INPUT_SENSITIVITY_TAG_INVALID_CLASSIFICATION');
  const redaction = REDACTIONS.find((word) => word === (tag.redaction ?? 'mask'));
  if (!redaction) throw new RunsRefusal('INPUT_PAYLOAD_INVALID', 'redaction must be mask or drop');
  const days = tag.retention_hint_days ?? undefined;
  if (days !== undefined && !(Number.isInteger(days) && (days as number) >= 0)) {
    throw new RunsRefusal('INPUT_PAYLOAD_INVALID', 'retention_hint_days must be a whole number');
  }
  const shown = path.map((step, at) => (typeof step === 'number' ? `[${step}]` : `${at > 0 ? '.' : ''}${step}`));
  return {
    path,
    shown: shown.join(''),
    classification,
    redaction,
    ...(days !== undefined && { retention_hint_days: days as number }),
  };
}

/** True when a key anywhere in it promises something sensitive. */
export function holdsSensitive(value: Json | undefined): boolean {
  if (Array.isArray(value)) return value.some((item: Json) => holdsSensitive(item));
  if (!isObject(value)) return false;
  return Object.entries(value).some(([key, member]) => isSensitiveKey(key) || holdsSensitive(member));
}

interface Cleaned<T> {
  readonly value: T;
  readonly marks: readonly Mark[];
}

export interface Cleaner {
  /** Tagged values are removed as their tags say; untagged ones under a sensitive key are masked as well. */
  clean<T extends JsonObject>(value: T, tags: readonly Tag[]): Cleaned<T>;
}

/** `digest` has to be keyed: sensitive values are often short, and a plain hash of them could be guessed. */
export function createCleaner(digest: (text: string) => string): Cleaner {
  /** Our masks, distinguished from objects of a caller that look like one. */
  const masks = new WeakSet<object>();
  const masked = (value: Json | undefined, classification: Classification): JsonObject => {
    const mask = { redacted: true, classification, digest: digest(JSON.stringify(value ?? null)) };
    masks.add(mask);
    return mask;
  };

  function applyTag(value: Json | undefined, tag: Tag, at: number): { value: Json | undefined; hit: boolean } {
    const step = tag.path[at];
    if (step === undefined) {
      if (value === undefined) return { value, hit: false };
      return { value: tag.redaction === 'drop' ? undefined : masked(value, tag.classification), hit: true };
    }
    if (Array.isArray(value) && typeof step === 'number' && step < value.length) {
      const inner = applyTag(value[step], tag, at + 1);
      // A dropped element leaves null in the array, so that the indices in later paths stay valid.
      return {
        value: value.map((item: Json, index) => (index === step ? (inner.value ?? null) : item)),
        hit: inner.hit,
      };
    }
    if (isObject(value) && typeof step === 'string' && Object.hasOwn(value, step)) {
      const inner = applyTag(value[step], tag, at + 1);
      const rest = Object.entries(value).filter(([key]) => key !== step || inner.value !== undefined);
      return {
        value: Object.fromEntries(rest.map(([key, member]) => [key, key === step ? inner.value : member])),
        hit: inner.hit,
      };
    }
    return { value, hit: false };
  }

  function maskKeys(value: Json | undefined, field: string, marks: Mark[]): Json | undefined {
    if (Array.isArray(value)) return value.map((item: Json, at) => maskKeys(item, `${field}[${at}]`, marks) ?? null);
    if (!isObject(value) || masks.has(value)) return value;
    const entries = Object.entries(value).map(([key, member]): [string, Json | undefined] => {
      const inside = field === '' ? key : `${field}.${key}`;
      if (!isSensitiveKey(key) || member === null || (isObject(member) && masks.has(member)))
        return [key, maskKeys(member, inside, marks)];
      const classification = assumedClass(key);
      marks.push({ field: inside, reason: `${classification}:mask (found by its name)` });
      return [key, masked(member, classification)];
    });
    return Object.fromEntries(entries);
  }

  return {
    clean(value, tags) {
      const marks: Mark[] = [];
      let current: Json | undefined = value;
      // Longest path first: a tag inside a value that another tag takes away still leaves its mark.
      for (const tag of tags.toSorted((a, b) => b.path.length - a.path.length)) {
        const { value: next, hit } = applyTag(current, tag, 0);
        current = next;
        if (hit) marks.push({ field: tag.shown, reason: `${tag.classification}:${tag.redaction}` });
      }
      const kept = maskKeys(current, '', marks) as typeof value;
      return { value: kept, marks };
    },
  };
}
