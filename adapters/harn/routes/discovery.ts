/** What anyone may know: versions, the card, the documents. And how the house is, for whoever looks after it. */
import { PROTOCOL_FAMILY } from '../../../mappings/harn.ts';
import { PROTOCOL_VERSION, VERSION } from '../../../src/index.ts';
import type { Desk, Reply, Routes } from '../call.ts';
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

export function discoveryRoutes(desk: Desk): Pick<Routes, Ids> {
  const { metrics, deps } = desk;
  const card = createCard(desk);
  const fresh = { 'cache-control': 'public, max-age=60' };

  async function health(): Promise<{
    ok: boolean;
    dependencies: { name: string; ok: boolean; detail: string | null }[];
  }> {
    const trouble = deps.trouble?.();
    const dependencies = [{ name: 'log', ok: trouble === undefined, detail: trouble ?? null }];
    return { ok: dependencies.every(({ ok }) => ok), dependencies };
  }

  async function ready(): Promise<Reply> {
    const { ok } = await health();
    const body = { ok, status: ok ? 'ok' : 'unavailable', version: VERSION };
    return { status: ok ? 200 : 503, body };
  }

  return {
    getProtocolDiscovery: async () => ({
      headers: fresh,
      body: {
        object: 'protocol_discovery',
        protocol_family: PROTOCOL_FAMILY,
        current_version: PROTOCOL_VERSION,
        supported_versions: [PROTOCOL_VERSION],
        capabilities: Object.fromEntries(CAPABILITIES.map(({ id }) => [id, true])),
      },
    }),
    getAgentCard: async ({ prefix }) => ({ body: card(prefix), headers: fresh }),
    getOpenApiDocument: async ({ prefix }) => ({ body: openApi(prefix || '/'), headers: fresh }),
    getDocs: async () => ({
      bytes: docsPage(),
      type: 'text/html; charset=utf-8',
      headers: { 'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'" },
    }),
    getVersion: async () => ({ body: { object: 'version', version: VERSION, protocol_version: PROTOCOL_VERSION } }),
    getRuntime: async () => ({
      body: {
        object: 'runtime',
        version: VERSION,
        protocol_version: PROTOCOL_VERSION,
        adapter: 'tollbridge',
        capabilities: CAPABILITIES,
      },
    }),
    listCapabilities: async () => ({ body: { object: 'capability_summary', capabilities: CAPABILITIES } }),

    getHealth: ready,
    getHealthLive: async () => ({ body: { ok: true, status: 'ok', version: VERSION } }),
    getHealthReady: ready,
    getHealthDeps: async () => {
      const { ok, dependencies } = await health();
      return { body: { ok, status: ok ? 'ok' : 'unavailable', version: VERSION, dependencies } };
    },
    getMetrics: async () => ({ bytes: metrics.text(), type: 'text/plain; version=0.0.4; charset=utf-8' }),
  };
}
