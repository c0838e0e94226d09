/**
 * The same client says the same things to a server and to the same server behind the gateway, in each era and over each
 * transport. What it hears must be the same, member by member, but for a short list of things that cannot be.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Fixture, fixtureCommand, serveFixture } from '../../support/mcp/fixture/server.ts';
import { type McpGateway, openMcpGateway } from '../../support/mcp/gateway.ts';
import { playLegacy } from '../../support/mcp/script/legacy.ts';
import { playModern } from '../../support/mcp/script/modern.ts';
import { comparable, REWRITES, type Said } from '../../support/mcp/script/script.ts';

const ERAS = { legacy: playLegacy, modern: playModern };
/** A server of both eras is spoken to in the modern one; the others know no other than the legacy one, and have its tasks. */
const ROUTES = [
  ['legacy', 'http', 'both'],
  ['legacy', 'stdio', 'both'],
  ['legacy', 'legacy-http', 'older'],
  ['legacy', 'legacy-stdio', 'older'],
  ['modern', 'http', 'both'],
  ['modern', 'stdio', 'both'],
] as const;
let fixture: Fixture;
let older: Fixture;
let gateway: McpGateway;
const direct = new Map<string, readonly Said[]>();

beforeAll(async () => {
  fixture = await serveFixture();
  older = await serveFixture({ era: 'legacy', olderTasks: true });
  gateway = await openMcpGateway({
    upstreams: {
      http: { url: fixture.url },
      stdio: { command: [...fixtureCommand()] },
      'legacy-http': { url: older.url },
      'legacy-stdio': { command: [...fixtureCommand('--era', 'legacy', '--older-tasks')] },
    },
  });
  for (const [era, play] of Object.entries(ERAS)) direct.set(`${era} both`, await play(fixture.url));
  direct.set('legacy older', await playLegacy(older.url, {}, true));
});
afterAll(async () => {
  await gateway.close();
  await fixture.close();
  await older.close();
});

for (const [era, upstream, kind] of ROUTES) {
  test(`a ${era} client hears through the gateway what it hears directly: ${upstream}`, async () => {
    const acrossEras = era === 'legacy' && kind === 'both';
    const through = comparable(await ERAS[era](gateway.at(upstream), {}, kind === 'older'), acrossEras);
    const wanted = comparable(direct.get(`${era} ${kind}`)!, acrossEras);
    expect(through.map(({ step }) => step)).toEqual(wanted.map(({ step }) => step));
    for (const [index, said] of through.entries()) expect.soft(said, said.step).toEqual(wanted[index]);
  });
}

test('two direct runs are equal by the same list, and not without it', async () => {
  for (const [era, play] of Object.entries(ERAS)) {
    const again = await play(fixture.url);
    expect(comparable(again, false)).toEqual(comparable(direct.get(`${era} both`)!, false));
  }
  expect(REWRITES.map(({ what }) => what)).toEqual([
    'an answer as one JSON body or as a stream',
    'ids of requests to the client',
    'words about a tool that is not there',
    'words about headers that do not say what the body says',
    'requestState',
    'tasks of 2025-11-25',
    'the span of a traceparent that is echoed',
    'taskId, createdAt, lastUpdatedAt',
  ]);
});
