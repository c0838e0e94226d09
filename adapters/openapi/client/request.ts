/** A request from the decided arguments of a call. Pure; throws a fault for arguments that would reach another address. */
import { asText, Fault, type Json, type JsonObject, own } from '../../../src/index.ts';
import { plain, type Written, writeBody } from './body.ts';
import type { Operation } from './operations.ts';

export interface Built {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Written | undefined;
}

export function requestFor(base: string, operation: Operation, args: JsonObject): Built {
  const query = new URLSearchParams();
  const headers = new Map<string, string>();
  let path = operation.path;
  for (const { argument, name, in: location } of operation.parameters) {
    const value = own(args, argument);
    if (value === undefined || value === null) continue;
    if (location === 'path') path = path.replaceAll(`{${name}}`, segment(name, value));
    else if (location === 'header') headers.set(name, headerText(name, value));
    else for (const each of Array.isArray(value) ? value : [value]) query.append(name, plain(each));
  }
  if (/[{}]/.test(path)) throw new Fault('invalid_request', `a part of the path ${operation.path} has no value`);
  const search = query.size > 0 ? `?${query}` : '';
  const url = new URL(`${base.replace(/\/+$/, '')}${path}${search}`);
  // The path is joined as text, so nothing an argument says can lead away from the configured address.
  if (!url.href.startsWith(`${base.replace(/\/+$/, '')}/`))
    throw new Fault('invalid_request', 'the path leads elsewhere');
  const body = operation.body && args.body !== undefined ? writeBody(operation.body, args.body) : undefined;
  return { url: url.href, method: operation.method, headers: Object.fromEntries(headers), body };
}

/** A segment of dots is resolved by every URL parser, encoded or not. */
function segment(name: string, value: Json): string {
  const text = Array.isArray(value) ? value.map(plain).join(',') : plain(value);
  if (text === '' || /^(\.|%2e){1,2}$/i.test(text)) throw new Fault('invalid_request', `${name} is no part of a path`);
  return encodeURIComponent(text);
}

function headerText(name: string, value: Json): string {
  const text = asText(plain(value));
  if (/[^\t\x20-\x7e]/.test(text)) throw new Fault('invalid_request', `${name} cannot be sent as a header`);
  return text;
}
