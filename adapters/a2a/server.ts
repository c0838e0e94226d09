/**
 * The door: each agent at a base of its own below `/a2a/`, with a card, two HTTP bindings and two revisions; the default
 * agent's card also at the root. Frames in, frames out: no policy here and no state. Refuses whoever does not say who it
 * is, except for the public card.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AgentFace, Artifact, Bridge, Closable, Deps, FrontDoor, Row } from '../../src/index.ts';
import type { Resolve } from '../../src/wire/outbound.ts';
import { type CallOptions, callOf } from './caller.ts';
import { type MadeCard, makeCard } from './card.ts';
import type { A2aSettings } from './config.ts';
import { createContexts } from './contexts.ts';
import { answer, contextOf, type Incoming, refusing, versionOf } from './exchange.ts';
import { speaking } from './face.ts';
import { serveGrpc } from './grpc.ts';
import { createHandler } from './handler.ts';
import { createJsonRpc } from './json-rpc.ts';
import { sendCard } from './public-card.ts';
import { createPush, type Push } from './push.ts';
import { KEEPER } from './push-configs.ts';
import { createReader, type Reader } from './reader.ts';
import { Refusal, said, toLegacyError, toRestError } from './refusal.ts';
import { createRest } from './rest.ts';

/** For tests: how names become addresses when a webhook is called, and how often gateways look after each other. */
export interface DoorOptions {
  readonly resolve?: Resolve;
  readonly takeOverMs?: number;
}

export function a2aDoor(settings: A2aSettings, deps: Deps, options: DoorOptions = {}): FrontDoor {
  return {
    name: 'a2a',
    carries: ['approval', 'input'],
    open: (bridge) => openDoor(settings, deps, bridge, options),
  };
}

const WELL_KNOWN = ['/.well-known/agent-card.json', '/.well-known/agent.json'];

async function openDoor(settings: A2aSettings, deps: Deps, bridge: Bridge, options: DoorOptions): Promise<Closable> {
  /** Who can be called just now: agents come and go with the configuration. */
  const faces = async () => (await bridge.agents(KEEPER)).filter(({ name }) => settings.agents?.includes(name) ?? true);
  const standard = (all: readonly AgentFace[]) => all.find((face) => face.default) ?? all[0];
  const openedAt = deps.clock.now();
  const readers = new Map<string, Reader>();
  const baseOf = (name: string) => `${settings.publicUrl ?? deps.http.url}/a2a/${encodeURIComponent(name)}`;
  const readerOf = (name: string): Reader => {
    const known = readers.get(name) ?? createReader(bridge, name, () => baseOf(name));
    readers.set(name, known);
    return known;
  };
  const push: Push | undefined = settings.push.enabled
    ? createPush({ bridge, settings, deps, readerOf, ...options })
    : undefined;
  const contexts = createContexts(bridge, settings.workspace);
  const onGrpc = settings.grpc?.agent ?? standard(await faces())?.name;
  let grpcAt: string | undefined;

  function createDesk(face: AgentFace) {
    let made: { base: string; key: string | undefined; card: MadeCard } | undefined;
    const cardDeps = () => ({ settings, sign: deps.sign, grpc: face.name === onGrpc ? grpcAt : undefined });
    const card = (key = made?.key): MadeCard => {
      const base = baseOf(face.name);
      if (made?.base !== base || made.key !== key) made = { base, key, card: makeCard(face, base, cardDeps()) };
      return made.card;
    };
    /** What this caller may also know: the tools the rules would let it try. */
    const extendedCard = async ({ actor }: CallOptions) => {
      const tools = await contexts.workspace(actor).then(
        (workspace) => bridge.offered(actor, workspace).catch(() => []),
        () => [],
      );
      return makeCard(face, baseOf(face.name), cardDeps(), tools).card;
    };
    const handler = createHandler({
      bridge,
      settings,
      agent: face.name,
      steers: face.abilities.steer ?? false,
      contexts,
      reader: readerOf(face.name),
      push,
      card: async () => card().card,
      extendedCard,
    });
    const binding = {
      handler,
      legacy: speaking(handler, { words: toLegacyError }),
      settings,
      authenticate: deps.authenticate,
      log: deps.log,
    };
    return { face, card, handler, jsonRpc: createJsonRpc(binding), rest: createRest(binding) };
  }

  type Desk = ReturnType<typeof createDesk>;
  const desks = new Map<string, Desk>();

  /** The desk of an agent, or of the one that stands at the root; made anew when the agent is another one. */
  async function deskOf(name: string | undefined): Promise<Desk | undefined> {
    const all = await faces();
    const face = name === undefined ? standard(all) : all.find((each) => each.name === name);
    if (!face) return undefined;
    const known = desks.get(face.name);
    if (known && isSame(known.face, face)) return known;
    const desk = createDesk(face);
    desks.set(face.name, desk);
    return desk;
  }

  function showCard(incoming: Incoming, desk: Desk | undefined): void {
    try {
      if (!desk) throw new Refusal('METHOD_NOT_FOUND', 'there is no agent at this address');
      // Whoever reads it holds it to the key in use; that may be another one by now.
      sendCard(incoming, desk.card(keyInUse(deps.jwks())), {
        version: versionOf(incoming),
        legacy: settings.legacy,
        openedAt,
      });
    } catch (thrown) {
      answer(incoming.response, said(thrown).http, 'application/json', toRestError(thrown));
    }
  }

  /** A file too large to travel inside, for whoever the task belongs to. */
  async function download(incoming: Incoming, desk: Desk, id: string): Promise<void> {
    const { response } = incoming;
    try {
      const { actor } = callOf(await contextOf(incoming, 'HTTP+JSON', '1.0', deps.authenticate));
      const artifact = await bridge.view<Artifact & Row>(actor, 'artifact', id);
      const owner = (artifact.metadata as { a2a?: { owner?: string } }).a2a?.owner;
      if (artifact.task_id) await readerOf(desk.face.name).own(actor, artifact.task_id);
      else if (owner !== actor.id) throw new Refusal('TASK_NOT_FOUND', `no artifact ${id}`);
      const bytes = await bridge.bytes(actor, id);
      response.writeHead(200, {
        'content-type': artifact.mime_type,
        'content-length': bytes.length,
        'content-disposition': 'attachment',
        'cache-control': 'private, no-store',
      });
      response.end(bytes);
    } catch (thrown) {
      refusing(incoming, thrown, deps.log);
      answer(response, said(thrown).http, 'application/json', toRestError(thrown));
    }
  }

  async function serve(incoming: Incoming, desk: Desk | undefined): Promise<void> {
    const { request, response, path } = incoming;
    if (WELL_KNOWN.includes(path) && request.method === 'GET') return showCard(incoming, desk);
    if (!desk) {
      const absent = new Refusal('METHOD_NOT_FOUND', 'there is no agent at this address');
      return answer(response, 404, 'application/json', toRestError(absent));
    }
    const file = /^\/artifacts\/([^/]+)$/.exec(path)?.[1];
    if (file && request.method === 'GET') return await download(incoming, desk, file);
    if (path === '' || path === '/') {
      if (request.method === 'POST') return await desk.jsonRpc(incoming);
      response.setHeader('allow', 'POST');
      const wrong = new Refusal('METHOD_NOT_FOUND', 'requests come as POST');
      return answer(response, 405, 'application/json', toRestError(wrong));
    }
    await desk.rest(incoming);
  }

  deps.http.mount('/', (request, response, next) => {
    const [path = '/', search = ''] = splitOnce(request.url ?? '/', '?');
    const found = /^\/a2a\/([^/]+)(.*)$/.exec(path);
    const atRoot = WELL_KNOWN.includes(path) && request.method === 'GET';
    if (!found && !atRoot) return next();
    const name = found ? (decoded(found[1] as string) ?? '') : undefined;
    const incoming = incomingOf(request, response, found ? (found[2] ?? '') : path, search);
    deskOf(name)
      .then((desk) => serve(incoming, desk))
      .catch(next);
  });

  const chosen = settings.grpc && onGrpc !== undefined ? await deskOf(onGrpc) : undefined;
  const grpc = settings.grpc && chosen ? await serveGrpc(settings.grpc, chosen.handler, settings, deps) : undefined;
  grpcAt = grpc?.at;
  await push?.resume();

  return {
    async close() {
      await grpc?.close();
      await push?.close();
    },
  };
}

/** What an agent says of itself is looked into only when it was said anew. */
function isSame(one: AgentFace, other: AgentFace): boolean {
  const { abilities, about } = other;
  if (one.default !== other.default) return false;
  if (one.abilities === abilities && one.about === about) return true;
  return JSON.stringify([one.abilities, one.about]) === JSON.stringify([abilities, about]);
}

/** The newest of the keys we publish. */
function keyInUse(jwks: object): string | undefined {
  return (jwks as { keys?: readonly { kid?: string }[] }).keys?.at(-1)?.kid;
}

function incomingOf(request: IncomingMessage, response: ServerResponse, path: string, search: string): Incoming {
  return { request, response, path, query: search === '' ? NO_QUERY : new URLSearchParams(search) };
}

const NO_QUERY = new URLSearchParams();

function splitOnce(text: string, at: string): [string, string] {
  const place = text.indexOf(at);
  return place < 0 ? [text, ''] : [text.slice(0, place), text.slice(place + 1)];
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
