/** Public information: versions, the card, the documents. Also health and metrics, for operators. */
import { PROTOCOL_FAMILY, VERSION_HEADER } from '../../../../mappings/harn.ts';
import { type Described, VERSION } from '../../../../src/index.ts';
import { VERSIONS } from '../../revisions/revisions.ts';
import type { Reply, RouteContext, Routes } from '../call.ts';
import { createCard } from '../card.ts';
import { docsPage } from '../docs-page.ts';
import { openApi } from '../openapi.ts';

type Ids =
  | 'getProtocolDiscovery'
  | 'getAgentCard'
  | 'getOpenApiDocument'
  | 'getDocs'
  | 'getVersion'
  | 'getRuntime'
  | 'listCapabilities'
  | `getHealth${'' | 'Live' | 'Ready' | 'Deps'}`
  | 'getMetrics';

const CAPABILITIES = [
  { id: 'rest', description: 'Every operation of this document.' },
  { id: 'sse', description: 'Event streams of a session, a task, or everything, with resume.' },
  { id: 'websocket', description: 'Events, commands and questions over one connection.' },
  { id: 'receipts', description: 'A signed, chained receipt for each ended task.' },
  { id: 'replay', description: 'Ended tasks and sessions lived through again from their record.' },
];

export function discoveryRoutes(context: RouteContext): Pick<Routes, Ids> {
  const { bridge, metrics, deps } = context;
  /** How long events can be read and tasks replayed. Receipts are kept forever. */
  const retention = () => {
    const ms = deps.retentionMs?.();
    return { events_seconds: ms === undefined ? null : Math.floor(ms / 1000), receipts_seconds: null };
  };
  const card = createCard({ ...context, retention });
  // The answers depend on the requested revision.
  const fresh = { 'cache-control': 'public, max-age=60', vary: VERSION_HEADER };

  async function health(): Promise<{
    ok: boolean;
    dependencies: { name: string; ok: boolean; detail: string | null }[];
  }> {
    const trouble = deps.trouble?.();
    const dependencies = [{ name: 'log', ok: trouble === undefined, detail: trouble ?? null }];
    return { ok: dependencies.every(({ ok }) => ok), dependencies };
  }

  async function ready(): Promise<Reply> {
    const ok = (await health()).ok && !deps.http.leaving;
    const body = { ok, status: ok ? 'ok' : 'unavailable', version: VERSION };
    return { status: ok ? 200 : 503, body };
  }

  return {
    getProtocolDiscovery: async ({ revision }) => ({
      headers: fresh,
      body: {
        object: 'protocol_discovery',
        protocol_family: PROTOCOL_FAMILY,
        current_version: revision.version,
        supported_versions: VERSIONS,
        capabilities: Object.fromEntries(CAPABILITIES.map(({ id }) => [id, true])),
        retention: retention(),
      },
    }),
    getAgentCard: async ({ prefix, revision }) => ({ body: await card(prefix, revision), headers: fresh }),
    // At the root the document also describes the other doors.
    getOpenApiDocument: async ({ prefix, revision }) => {
      const own = openApi(revision, { server: prefix || '/', oauth: deps.oauth ?? false });
      return { body: prefix ? own : withOthers(own, deps.http.described), headers: fresh };
    },
    getDocs: async ({ revision }) => ({
      bytes: docsPage(revision),
      type: 'text/html; charset=utf-8',
      headers: { 'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'" },
    }),
    getVersion: async ({ revision }) => ({
      body: { object: 'version', version: VERSION, protocol_version: revision.version },
    }),
    getRuntime: async ({ revision }) => ({
      body: {
        object: 'runtime',
        version: VERSION,
        protocol_version: revision.version,
        adapter: 'tollbridge',
        capabilities: CAPABILITIES,
        retention: retention(),
      },
    }),
    listCapabilities: async () => ({
      body: { object: 'capability_summary', capabilities: CAPABILITIES, retention: retention() },
    }),

    getHealth: ready,
    getHealthLive: async () => ({ body: { ok: true, status: 'ok', version: VERSION } }),
    getHealthReady: ready,
    getHealthDeps: async () => {
      const { ok, dependencies } = await health();
      return { body: { ok, status: ok ? 'ok' : 'unavailable', version: VERSION, dependencies } };
    },
    getMetrics: async ({ actor }) => ({
      bytes: metrics.text(bridge.toolCalls(), await bridge.serverStates(actor), await bridge.agentAddresses(actor)),
      type: 'text/plain; version=0.0.4; charset=utf-8',
    }),
  };
}

type Node = ReturnType<typeof openApi>;

/** Members of this document take precedence; the others' are added. */
function withOthers(document: Node, others: ReadonlyMap<string, Described> | undefined): Node {
  let whole = document as Node & Described;
  for (const { paths, components } of others?.values() ?? []) {
    const { schemas, securitySchemes } = whole.components;
    whole = {
      ...whole,
      paths: { ...paths, ...whole.paths },
      components: {
        ...whole.components,
        schemas: { ...components.schemas, ...schemas },
        securitySchemes: { ...components.securitySchemes, ...securitySchemes },
      },
    };
  }
  return whole;
}
