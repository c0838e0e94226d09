/** Many clients at once that all count from one, on one server: everyone hears their own answers and nobody else's. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Loose } from '../../../support/mcp/fixture/asking.ts';
import { type FixtureProcess, startFixture } from '../../../support/mcp/fixture/process.ts';
import { fixtureCommand } from '../../../support/mcp/fixture/server.ts';
import { type McpGateway, openMcpGateway } from '../../../support/mcp/gateway.ts';
import { exchange } from '../../../support/mcp/wire-client.ts';

const CLIENTS = 500;
/** Sessions cost a server more than requests do, so there are fewer of them; `CLIENTS=500` sets the number. */
const SESSIONS = Number(process.env.CLIENTS ?? 100);
/** So many clients take their time on a small machine. */
const TIMEOUT_MS = 180_000;
const SAME_ID = 1;
const SAME_TOKEN = 'p';
let fixture: FixtureProcess;
let gateway: McpGateway;

beforeAll(async () => {
  fixture = await startFixture();
  gateway = await openMcpGateway({
    upstreams: { http: { url: fixture.url }, stdio: { command: [...fixtureCommand()] } },
  });
});
afterAll(async () => {
  await gateway.close();
  await fixture.close();
});

const call = (word: string, meta: Loose = {}) => ({
  jsonrpc: '2.0',
  id: SAME_ID,
  method: 'tools/call',
  params: { name: 'say_on_the_way', arguments: { word }, _meta: { progressToken: SAME_TOKEN, ...meta } },
});

/** What a client should hear, and nothing else. */
const receivedBy = (word: string) => ({
  progress: [1, 2].map((progress) => ({ progressToken: SAME_TOKEN, progress, message: word })),
  answer: { id: SAME_ID, text: word },
});

function summaryOf(frames: readonly Loose[]) {
  const last = frames.at(-1);
  return {
    progress: frames.slice(0, -1).map(({ params }) => params),
    answer: { id: last?.id, text: last?.result?.content?.[0]?.text },
  };
}

async function manyClients(size: number, one: (word: string) => Promise<readonly Loose[]>): Promise<void> {
  const words = Array.from({ length: size }, (_, count) => `client ${count}`);
  const received = await Promise.all(words.map(async (word) => summaryOf(await one(word))));
  expect(received).toEqual(words.map(receivedBy));
}

for (const upstream of ['http', 'stdio']) {
  test(
    `${CLIENTS} modern clients with one id and one progress token, on one server over ${upstream}`,
    async () => {
      const meta = {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientCapabilities': {},
      };
      const headers = {
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': 'tools/call',
        'mcp-name': 'say_on_the_way',
      };
      await manyClients(CLIENTS, async (word) => {
        const { frames } = await exchange(gateway.at(upstream), { headers, body: call(word, meta) });
        return frames;
      });
    },
    TIMEOUT_MS,
  );
}

test(
  `${SESSIONS} sessions of legacy clients with one id and one progress token, on one server over http`,
  async () => {
    await manyClients(SESSIONS, async (word) => {
      const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: word, version: '1' } };
      const body = { jsonrpc: '2.0', id: SAME_ID, method: 'initialize', params };
      const begun = await exchange(gateway.at('http'), { body });
      const session = { 'mcp-session-id': begun.headers['mcp-session-id'] as string };
      const headers = { ...session, 'mcp-protocol-version': '2025-11-25' };
      await exchange(gateway.at('http'), { headers, body: { jsonrpc: '2.0', method: 'notifications/initialized' } });
      const { frames } = await exchange(gateway.at('http'), { headers, body: call(word) });
      await exchange(gateway.at('http'), { method: 'DELETE', headers });
      return frames;
    });
  },
  TIMEOUT_MS,
);
