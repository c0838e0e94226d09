/**
 * The visible part of a tool's input and output: a preview, a few highlights, and the numbers behind them. Sensitive keys are
 * removed first, so that the preview cannot contain what the highlights hide. Pure.
 */
import { isSensitiveKey, MOST_HIGHLIGHTS, PREVIEW_LENGTH, SUMMARY_VERSION } from '../../../../mappings/runs.ts';
import { beginning, isObject, type Json, type JsonObject } from '../../../../src/index.ts';

export interface Summary extends JsonObject {
  readonly schema_version: string;
  readonly preview: string | null;
  readonly highlights: readonly { readonly key: string; readonly value: string; readonly redacted: boolean }[];
  readonly stats: {
    readonly fields_total: number;
    readonly fields_redacted: number;
    readonly bytes_before_redaction: number;
    readonly bytes_after_redaction: number;
  };
  readonly truncated: boolean;
}

const HIDDEN = '[redacted]';
const LONGEST_HIGHLIGHT = 120;
/** Values that the log has redacted. */
const TAKEN_OUT = /^\[redacted: .+\]$/;

export function summarize(value: Json | undefined): Summary {
  const before = value === undefined ? '' : textOf(value);
  const fields: { key: string; value: Json; redacted: boolean }[] = [];
  const shown = value === undefined ? undefined : hide(value, '', fields);
  const after = shown === undefined ? '' : textOf(shown);
  const characters = [...after];
  const highlights = fields.slice(0, MOST_HIGHLIGHTS).map(({ key, value: leaf, redacted }) => {
    return { key, value: redacted ? HIDDEN : brief(textOf(leaf)), redacted };
  });
  return {
    schema_version: SUMMARY_VERSION,
    preview: after === '' ? null : characters.slice(0, PREVIEW_LENGTH).join(''),
    highlights,
    stats: {
      fields_total: fields.length,
      fields_redacted: fields.filter(({ redacted }) => redacted).length,
      bytes_before_redaction: Buffer.byteLength(before),
      bytes_after_redaction: Buffer.byteLength(after),
    },
    truncated: characters.length > PREVIEW_LENGTH || fields.length > MOST_HIGHLIGHTS,
  };
}

/** The value without sensitive members; collects its leaves in `fields`. */
function hide(value: Json, key: string, fields: { key: string; value: Json; redacted: boolean }[]): Json {
  if (Array.isArray(value)) return value.map((item: Json, at) => hide(item, `${key}[${at}]`, fields));
  if (!isObject(value)) {
    if (key !== '') fields.push({ key, value, redacted: typeof value === 'string' && TAKEN_OUT.test(value) });
    return value;
  }
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      const path = key === '' ? name : `${key}.${name}`;
      if (!isSensitiveKey(name) || member === null || member === undefined)
        return [name, hide(member ?? null, path, fields)];
      fields.push({ key: path, value: null, redacted: true });
      return [name, HIDDEN];
    }),
  );
}

function brief(text: string): string {
  return text.length > LONGEST_HIGHLIGHT ? `${beginning(text, LONGEST_HIGHLIGHT)}…` : text;
}

/** A text as it is, anything else as compact JSON. */
function textOf(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
