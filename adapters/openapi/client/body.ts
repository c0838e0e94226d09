/**
 * Bodies of requests: which of those an operation takes is used, and the text of one from a decided argument. JSON, forms and plain
 * text; fields of forms are text, so an operation that needs a file has no body here.
 */
import { randomBytes } from 'node:crypto';
import { Fault, isObject, type Json, type JsonObject, own } from '../../../src/index.ts';

/** The media type of the document, and how its text is written. */
export interface Body {
  readonly type: string;
  readonly kind: 'json' | 'form' | 'multipart' | 'text';
  readonly schema: JsonObject;
}

/** The first kind that an operation takes is used. */
const KINDS: readonly (readonly [Body['kind'], RegExp])[] = [
  ['json', /^application\/(.+\+)?json\b/i],
  ['form', /^application\/x-www-form-urlencoded\b/i],
  ['multipart', /^multipart\/form-data\b/i],
  ['text', /^text\/plain\b/i],
];

/** `schemas`: of each media type, resolved. Undefined when none of them can be written. */
export function bodyAmong(schemas: Readonly<Record<string, JsonObject>>): Body | undefined {
  for (const [kind, pattern] of KINDS) {
    const type = Object.keys(schemas).find((each) => pattern.test(each));
    const schema = type === undefined ? undefined : fitting(kind, schemas[type] as JsonObject);
    if (type !== undefined && schema) return { type, kind, schema };
  }
  return undefined;
}

/** The schema that arguments have to fit. A required file cannot be given; one that is not is left out. */
function fitting(kind: Body['kind'], schema: JsonObject): JsonObject | undefined {
  if (kind === 'json') return schema;
  if (kind === 'text') return { ...schema, type: 'string' };
  const properties = own(schema, 'properties');
  const fields = Object.entries(isObject(properties) ? properties : {});
  const files = fields.filter(([, field]) => isFile(field as Json)).map(([name]) => name);
  const required = Array.isArray(schema.required) ? schema.required : [];
  if (files.some((name) => required.includes(name))) return undefined;
  const text = Object.fromEntries(fields.filter(([name]) => !files.includes(name)));
  return { ...schema, type: 'object', properties: text };
}

/** As 3.0 and as 3.1 write it; also several of them. */
function isFile(field: Json): boolean {
  if (!isObject(field)) return false;
  if (field.format === 'binary' || field.contentMediaType !== undefined || field.contentEncoding !== undefined)
    return true;
  return field.items !== undefined && isFile(field.items);
}

export interface Written {
  readonly type: string;
  readonly text: string;
}

export function writeBody({ kind, type }: Pick<Body, 'kind' | 'type'>, value: Json): Written {
  switch (kind) {
    case 'json':
      return { type: 'application/json', text: JSON.stringify(value) };
    case 'text':
      if (typeof value !== 'string') throw new Fault('invalid_request', 'the body has to be a text');
      return { type: 'text/plain; charset=utf-8', text: value };
    case 'form':
      return { type, text: new URLSearchParams(fieldsOf(value)).toString() };
    case 'multipart':
      return multipart(fieldsOf(value));
  }
}

type Field = [name: string, value: string];

/** A list is a field for each of its entries; a field that is null is not sent. */
function fieldsOf(value: Json): Field[] {
  if (!isObject(value)) throw new Fault('invalid_request', 'the body of a form has to be an object');
  return Object.entries(value).flatMap(([name, field]) =>
    (Array.isArray(field) ? field : [field as Json]).flatMap((each): Field[] =>
      each === null ? [] : [[name, plain(each)]],
    ),
  );
}

/** The boundary is random, so no value can hold it and begin a field of its own; a name cannot end its quotes. */
function multipart(fields: readonly Field[]): Written {
  const boundary = `tollbridge-${randomBytes(18).toString('hex')}`;
  const parts = fields.map(([name, value]) => {
    const quoted = name.replaceAll('\r', '%0D').replaceAll('\n', '%0A').replaceAll('"', '%22');
    return `--${boundary}\r\ncontent-disposition: form-data; name="${quoted}"\r\n\r\n${value}\r\n`;
  });
  return { type: `multipart/form-data; boundary=${boundary}`, text: `${parts.join('')}--${boundary}--\r\n` };
}

/** A value where only text can be sent. */
export function plain(value: Json): string {
  return isObject(value) || Array.isArray(value) ? JSON.stringify(value) : String(value);
}
