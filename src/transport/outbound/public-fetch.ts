/**
 * Calls to addresses that callers supplied. Only public addresses are dialled, exactly the checked address is dialled,
 * and no redirect is followed: a name that resolves to an internal address is refused when it is registered and again
 * when it is called. Knows no protocol.
 */

import { lookup as systemLookup } from 'node:dns/promises';
import { request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { anySignal } from '../../model/values/signals.ts';
import { outgoingTrace, type TraceMembers } from './trace-context.ts';

export interface OutboundRules {
  /** `host` or `host:port` that may be called although it is not public. */
  readonly allow: readonly string[];
  /** Allows plain http to the outside, which can be read on the way. */
  readonly insecure: boolean;
}

export type Resolve = (host: string) => Promise<readonly { readonly address: string; readonly family: number }[]>;

/**
 * Everything that is not the public internet: loopback, private networks, carrier NAT, test ranges, multicast, reserved
 * ranges.
 */
const INSIDE = new BlockList();
for (const [address, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const) {
  INSIDE.addSubnet(address, bits, 'ipv4');
}
/** Of IPv6 only the global unicast block is public, and not all of it. */
const GLOBAL = new BlockList();
GLOBAL.addSubnet('2000::', 3, 'ipv6');
for (const [address, bits] of [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const) {
  INSIDE.addSubnet(address, bits, 'ipv6');
}

export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return !INSIDE.check(address, 'ipv4');
  return family === 6 && GLOBAL.check(address, 'ipv6') && !INSIDE.check(address, 'ipv6');
}

const resolveAll: Resolve = (host) => systemLookup(host, { all: true, verbatim: true });

/**
 * The reason not to call this address, or undefined. A name that cannot be resolved now is checked again when it is
 * called.
 */
export async function outboundTrouble(
  text: string,
  rules: OutboundRules,
  resolve = resolveAll,
): Promise<string | undefined> {
  const url = parse(text);
  if (typeof url === 'string') return url;
  if (isAllowed(url, rules)) return undefined;
  if (url.protocol !== 'https:' && !rules.insecure) return 'the address has to be https';
  const host = bareHost(url);
  if (isIP(host)) return isPublicAddress(host) ? undefined : NOT_PUBLIC;
  if (isInsideName(host)) return NOT_PUBLIC;
  const found = await resolve(host).catch(() => []);
  return found.every(({ address }) => isPublicAddress(address)) ? undefined : NOT_PUBLIC;
}
const NOT_PUBLIC = 'the address is not a public one';

function parse(text: string): URL | string {
  if (!URL.canParse(text)) return 'this is not an address';
  const url = new URL(text);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'the address has to be https';
  if (url.username || url.password) return 'the address must not name a user';
  return url;
}

/** Names that only resolve on a machine or its network. */
function isInsideName(host: string): boolean {
  return !host.includes('.') || /\.(localhost|local|internal|intranet|lan|home\.arpa)$/.test(host);
}

function bareHost({ hostname }: URL): string {
  return hostname
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '');
}

function isAllowed(url: URL, { allow }: OutboundRules): boolean {
  const host = bareHost(url);
  const port = url.port || (url.protocol === 'https:' ? '443' : '80');
  return allow.some((entry) => entry === host || entry === `${host}:${port}`);
}

interface Outgoing {
  readonly headers: Readonly<Record<string, string>>;
  /** The trace the call is part of; absent: a trace of its own. */
  readonly trace?: TraceMembers;
  readonly body: string;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/** The status of the answer. Its body is not read, and a redirect is not followed. */
export async function postOut(
  text: string,
  rules: OutboundRules,
  out: Outgoing,
  resolve = resolveAll,
): Promise<number> {
  const response = await sendOut(text, rules, { method: 'POST', ...out }, resolve);
  response.resume();
  response.on('error', () => {});
  return response.statusCode ?? 0;
}

export interface OutgoingRequest extends Omit<Outgoing, 'body'> {
  readonly method: string;
  readonly body?: string | undefined;
}

export interface OutboundAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/** The whole answer, of at most `limit` bytes. A redirect is not followed. */
export async function requestOut(
  text: string,
  rules: OutboundRules,
  { limit, ...out }: OutgoingRequest & { readonly limit: number },
  resolve = resolveAll,
): Promise<OutboundAnswer> {
  const response = await sendOut(text, rules, out, resolve);
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of response as AsyncIterable<Buffer>) {
    size += piece.length;
    if (size > limit) {
      response.destroy();
      throw new Error(`the answer has more than ${limit} bytes`);
    }
    pieces.push(piece);
  }
  const headers = Object.entries(response.headers).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)]],
  );
  return {
    status: response.statusCode ?? 0,
    headers: Object.fromEntries(headers) as Record<string, string>,
    text: Buffer.concat(pieces).toString('utf8'),
  };
}

async function sendOut(
  text: string,
  rules: OutboundRules,
  out: OutgoingRequest,
  resolve: Resolve,
): Promise<IncomingMessage> {
  const trouble = parse(text);
  if (typeof trouble === 'string') throw new Error(trouble);
  const url = trouble;
  const open = isAllowed(url, rules);
  if (!open && url.protocol !== 'https:' && !rules.insecure) throw new Error('the address has to be https');
  const host = bareHost(url);
  if (!open && (isIP(host) ? !isPublicAddress(host) : isInsideName(host))) throw new Error(NOT_PUBLIC);
  const options: RequestOptions = {
    method: out.method,
    headers: {
      ...outgoingTrace(out.trace),
      ...out.headers,
      ...(out.body !== undefined && { 'content-length': Buffer.byteLength(out.body) }),
    },
    agent: false,
    lookup: pinned(resolve, open),
    signal: out.signal
      ? anySignal([out.signal, AbortSignal.timeout(out.timeoutMs)])
      : AbortSignal.timeout(out.timeoutMs),
  };
  const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
  return await new Promise((resolvePromise, reject) => {
    const request = send(url, options, resolvePromise);
    request.on('error', reject);
    request.end(out.body);
  });
}

/** Resolves once, checks the addresses found, and returns exactly those. */
function pinned(resolve: Resolve, open: boolean): LookupFunction {
  return (host, options, done) => {
    resolve(host).then(
      (found) => {
        const [first] = found;
        if (!first) return done(new Error('the name has no address'), '', 0);
        if (!open && !found.every(({ address }) => isPublicAddress(address))) return done(new Error(NOT_PUBLIC), '', 0);
        if (options.all) return done(null, found as never);
        return done(null, first.address, first.family);
      },
      (cause) => done(cause as Error, '', 0),
    );
  };
}
