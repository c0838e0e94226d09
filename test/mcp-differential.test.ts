/**
 * The same client says the same things to a server and to the same server behind the gateway, in each era and over each
 * transport. What it hears must be the same, member by member, but for a short list of things that cannot be.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Fixture, fixtureCommand, serveFixture } from './support/mcp-fixture.ts';
import { type McpGateway, openMcpGateway } from './support/mcp-gateway.ts';
import { comparable, REWRITES, type Said } from './support/mcp-script.ts';
import { playLegacy } from './support/mcp-script-legacy.ts';
import { playModern } from './support/mcp-script-modern.ts';

const ERAS = { legacy: playLegacy, modern: playModern };
let fixture: Fixture;
let gateway: McpGateway;
const direct = new Map<string, readonly Said[]>();

beforeAll(async () => {
  fixture = await serveFixture();
  gateway = await openMcpGateway({
    upstreams: { http: { url: fixture.url }, stdio: { command: [...fixtureCommand()] } },
  });
  for (const [era, play] of Object.entries(ERAS)) direct.set(era, await play(fixture.url));
});
afterAll(async () => {
  await gateway.close();
  await fixture.close();
});

for (const [era, play] of Object.entries(ERAS)) {
  for (const upstream of ['http', 'stdio']) {
    test(`a ${era} client hears through the gateway what it hears directly, over ${upstream}`, async () => {
      const through = comparable(await play(gateway.at(upstream)));
      const wanted = comparable(direct.get(era)!);
      expect(through.map(({ step }) => step)).toEqual(wanted.map(({ step }) => step));
      for (const [index, said] of through.entries()) expect.soft(said, said.step).toEqual(wanted[index]);
    });
  }
}

test('two direct runs are equal by the same list, and not without it', async () => {
  for (const [era, play] of Object.entries(ERAS)) {
    const again = await play(fixture.url);
    expect(comparable(again)).toEqual(comparable(direct.get(era)!));
  }
  expect(REWRITES.map(({ what }) => what)).toEqual([
    'an answer as one JSON body or as a stream',
    'ids of requests to the client',
    'requestState',
    'taskId, createdAt, lastUpdatedAt',
  ]);
});
