/**
 * Connects to a peer: reads its card, checks the signature against pinned keys, and chooses one of its addresses. The card does
 * not decide where we connect: only the configured origin and those allowed by name are used, and the token goes nowhere else.
 */

import { createHash } from 'node:crypto';
import { AgentCard, verifyAgentCardSignature } from '@a2a-js/sdk';
import {
  type CallInterceptor,
  type Client,
  ClientFactory,
  ClientFactoryOptions,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from '@a2a-js/sdk/client';
import { asText, Fault, type Json } from '../../../../src/index.ts';
import { parseJson } from '../../../../src/transport/http/body.ts';
import { readWithin } from '../../../../src/transport/outbound/remote.ts';
import { outgoingTrace, type TraceMembers } from '../../../../src/transport/outbound/trace-context.ts';
import type { BackendDeps, PeerSettings } from '../config.ts';
import { NotReached, unwrapped, wasNeverSent } from '../faults.ts';
import { soundFetch } from '../read-answers.ts';

export interface PeerConnection {
  readonly client: Client;
  readonly card: AgentCard;
  /** `sha256:…` of the card as received. */
  readonly cardHash: string;
  readonly verified: boolean;
  readonly binding: string;
  readonly version: string;
  /** The extensions the card declares, by URI. */
  readonly extensions: ReadonlySet<string>;
}

/** Paths of cards, newest first. */
const PATHS = ['.well-known/agent-card.json', '.well-known/agent.json'];
const LARGEST_CARD = 1024 * 1024;
const COMPAT = { legacyCompat: { enabled: true } };
type Interface = AgentCard['supportedInterfaces'][number];

export async function connect(settings: PeerSettings, deps: BackendDeps): Promise<PeerConnection> {
  const raw = await readCard(settings, deps).catch((cause) => {
    throw wasNeverSent(cause) ? new NotReached(settings, cause) : unwrapped(cause, settings);
  });
  const verified = await verify(raw, settings);
  const card = await wellFormed(raw, settings);
  const usable = card.supportedInterfaces.filter((each) => isAllowed(each, settings));
  if (usable.length === 0) {
    throw new Fault('upstream_unavailable', `the card of ${settings.name} names no address we may use (allow_origins)`);
  }
  const fetchImpl = soundFetch(guardedFetch(settings, deps), settings);
  const grpc = usable.some(({ protocolBinding }) => protocolBinding === 'GRPC')
    ? await grpcFactory(settings, deps)
    : [];
  const factory = new ClientFactory(
    ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
      transports: [
        new JsonRpcTransportFactory({ fetchImpl, ...COMPAT }),
        new RestTransportFactory({ fetchImpl, ...COMPAT }),
        ...grpc,
      ],
      ...(settings.binding && { preferredTransports: [settings.binding] }),
      ...(grpc.length > 0 && { clientConfig: { interceptors: [tokenOverGrpc(settings, deps)] } }),
    }),
  );
  const chosen = choose(usable, settings.binding, grpc.length > 0);
  const client = await factory.createFromAgentCard({ ...card, supportedInterfaces: [chosen] });
  const extensions = new Set((card.capabilities?.extensions ?? []).map(({ uri }) => uri));
  const { protocolBinding: binding, protocolVersion: version } = chosen;
  return { client, card, cardHash: raw.hash, verified, binding, version, extensions };
}

/** 1.0 before 0.3, in the card's order; bindings without an installed client are skipped. */
function choose(usable: readonly Interface[], wanted: string | undefined, grpc: boolean): Interface {
  const speaks = usable.filter(
    ({ protocolBinding }) => (wanted ? protocolBinding === wanted : true) && (protocolBinding !== 'GRPC' || grpc),
  );
  const [first] = [...speaks].sort((a, b) => Number(b.protocolVersion === '1.0') - Number(a.protocolVersion === '1.0'));
  if (!first) throw new Fault('upstream_unavailable', `the peer does not offer ${wanted ?? 'a binding we speak'}`);
  return first;
}

function isAllowed({ url, protocolBinding }: Interface, { allowed }: PeerSettings): boolean {
  if (protocolBinding === 'GRPC') return allowed.has(url.replace(/^\w+:\/\//, ''));
  return URL.canParse(url) && allowed.has(new URL(url).origin);
}

interface RawCard {
  readonly json: Json;
  readonly hash: string;
}

async function readCard(settings: PeerSettings, deps: BackendDeps): Promise<RawCard> {
  const fetchImpl = guardedFetch(settings, deps);
  const paths = settings.base.pathname.endsWith('.json') ? [''] : PATHS;
  let problem = 'it has no card';
  for (const path of paths) {
    const url = path ? new URL(path, settings.base) : settings.base;
    const signal = AbortSignal.timeout(settings.requestMs);
    const answer = await fetchImpl(url, { headers: { 'a2a-version': '1.0', accept: 'application/json' }, signal });
    if (!answer.ok) {
      problem = `its card answers ${answer.status}`;
      continue;
    }
    const bytes = await readWithin(answer, LARGEST_CARD);
    try {
      const json = parseJson(bytes) as Json;
      return { json, hash: `sha256:${createHash('sha256').update(bytes).digest('hex')}` };
    } catch {
      problem = 'its card is not JSON, or can be read in two ways';
    }
  }
  throw new Fault('upstream_unavailable', `${settings.name} at ${settings.base.host} cannot be used: ${problem}`);
}

/** Every member has the type that the protocol gives it: the resolver returns a card of 1.0 as it was sent. */
async function wellFormed({ json }: RawCard, { name, base }: PeerSettings): Promise<AgentCard> {
  const fetchImpl = async () => Response.json(json);
  try {
    const { supportedInterfaces } = json as { supportedInterfaces?: unknown };
    const older = () => new DefaultAgentCardResolver({ ...COMPAT, fetchImpl }).resolve(base.href);
    return AgentCard.fromJSON(Array.isArray(supportedInterfaces) ? json : AgentCard.toJSON(await older()));
  } catch (cause) {
    throw new Fault('upstream_unavailable', `${name} at ${base.host} cannot be used: its card is not of the protocol`, {
      cause,
    });
  }
}

/** Verifies the JSON as received. Without pinned keys a signature proves nothing to us, so it is not checked. */
async function verify({ json }: RawCard, { keys, name }: PeerSettings): Promise<boolean> {
  if (!keys) return false;
  const check = verifyAgentCardSignature(async (kid) => {
    const found = keys.find((key) => key.kid === kid);
    if (!found) throw new Error('signed with another key');
    return found as never;
  });
  try {
    // The verifier reads the members it signs and nothing else: no field of the card is trusted before.
    await check(json as unknown as AgentCard);
    return true;
  } catch (cause) {
    throw new Fault('upstream_unavailable', `the card of ${name} is not signed with a key we pinned`, { cause });
  }
}

/** The same client with a trace context: each call has its own headers, or its own metadata. */
export function tracedClient(client: Client, trace: TraceMembers): Client {
  return new Proxy(client, {
    get(target, name) {
      const member = Reflect.get(target, name) as unknown;
      if (typeof member !== 'function' || !CALLS.has(name)) return member;
      return (request: unknown, options?: { serviceParameters?: Record<string, string> }) => {
        const serviceParameters = { ...options?.serviceParameters, ...outgoingTrace(trace) };
        return member.call(target, request, { ...options, serviceParameters });
      };
    },
  });
}
const CALLS: ReadonlySet<string | symbol> = new Set([
  'sendMessage',
  'sendMessageStream',
  'getTask',
  'listTasks',
  'cancelTask',
  'resubscribeTask',
  'createTaskPushNotificationConfig',
  'getTaskPushNotificationConfig',
  'deleteTaskPushNotificationConfig',
]);

/** Requests only allowed origins, follows no redirects, and sends the token only where it belongs. */
export function guardedFetch(settings: PeerSettings, deps: BackendDeps): typeof fetch {
  return async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : asText(input));
    if (!settings.allowed.has(url.origin)) {
      throw new Fault('permission_denied', `${settings.name} may not send us to ${url.origin}`);
    }
    const headers = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined));
    for (const [name, value] of await credentialsOf(settings, deps)) headers.set(name, value);
    if (!headers.has('traceparent')) headers.set('traceparent', outgoingTrace().traceparent);
    const answer = await fetch(input, { ...init, headers, redirect: 'manual' });
    if (answer.status < 300 || answer.status >= 400) return answer;
    await answer.body?.cancel();
    throw new Fault('upstream_unavailable', 'the peer answers with a redirect, which is not followed');
  };
}

/** The headers that say who we are, with their values. Read each time: a secret may have been replaced. */
async function credentialsOf({ secret, headers }: PeerSettings, deps: BackendDeps): Promise<[string, string][]> {
  const named = [...headers].map(async ([name, from]): Promise<[string, string]> => [name, await deps.secret(from)]);
  const token = secret ? [['authorization', `Bearer ${await deps.secret(secret)}`] as [string, string]] : [];
  return [...(await Promise.all(named)), ...token];
}

/** gRPC does not use fetch; its address was checked when it was chosen. */
function tokenOverGrpc(settings: PeerSettings, deps: BackendDeps): CallInterceptor {
  return {
    async before(call) {
      const credentials = Object.fromEntries(await credentialsOf(settings, deps));
      call.options = { ...call.options, serviceParameters: { ...call.options?.serviceParameters, ...credentials } };
    },
    async after() {},
  };
}

async function grpcFactory(settings: PeerSettings, deps: BackendDeps) {
  try {
    const [{ GrpcTransportFactory }, grpc] = await Promise.all([
      import('@a2a-js/sdk/client/grpc'),
      import('@grpc/grpc-js'),
    ]);
    const secure = settings.base.protocol === 'https:';
    const plain = secure ? grpc.credentials.createSsl() : grpc.credentials.createInsecure();
    return [new GrpcTransportFactory({ grpcChannelCredentials: plain, legacyCompat: { enabled: true } })];
  } catch (cause) {
    if (settings.binding !== 'GRPC') return [];
    deps.log.warn({ err: cause, peer: settings.name }, 'gRPC needs @grpc/grpc-js and @bufbuild/protobuf');
    throw new Fault('invalid_request', 'a peer over gRPC needs: npm install @grpc/grpc-js @bufbuild/protobuf', {
      cause,
    });
  }
}
