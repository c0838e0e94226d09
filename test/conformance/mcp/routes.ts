/** The ways in which the suite reaches something, and what lies in a way's nature rather than in our hands. */
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { UpstreamConfig } from '../../../adapters/mcp/config.ts';
import type { Closable } from '../../../src/ports/index.ts';
import type { Era } from '../../support/mcp/fixture/asking.ts';
import { fixtureCommand, serveFixture } from '../../support/mcp/fixture/server.ts';
import { openMcpGateway } from '../../support/mcp/gateway.ts';
import { PROJECT } from '../../support/process/project.ts';
import { serveEverything } from './own-server.ts';
import { REVISIONS, type Revision, type Target } from './suite.ts';

export interface Route {
  readonly name: string;
  readonly revisions: readonly Revision[];
  /** The suite plays the server, with scenarios of its own that the fixture knows nothing of. */
  readonly asClient?: boolean;
  /** The route to the same server without the gateway, which says what passes. Everything has to pass where there is none. */
  readonly like?: string;
  /** Measured to be compared with: what fails here fails in the server. */
  readonly measure?: boolean;
  open(revision: Revision): Promise<Closable & { readonly target: Target }>;
}

const [LEGACY, MODERN] = REVISIONS;

/** The gateway in front of one server. */
async function through(upstream: UpstreamConfig, fixture?: Closable): ReturnType<Route['open']> {
  const gateway = await openMcpGateway({ upstreams: { fixture: upstream } });
  return {
    target: { server: gateway.at('fixture') },
    async close() {
      await gateway.close();
      await fixture?.close();
    },
  };
}

async function throughHttp(era?: Era, olderTasks = false): ReturnType<Route['open']> {
  const fixture = await serveFixture({ ...(era && { era }), olderTasks });
  return await through({ url: fixture.url }, fixture);
}

const BUILT = join(PROJECT, 'dist/src/main.js');
/** Built, if it is: it starts in a fraction of the time. */
const PROGRAM = existsSync(BUILT) ? [BUILT] : ['--import', 'tsx', join(PROJECT, 'src/main.ts')];

/** The suite appends the address it serves at. */
const CLIENT = [process.execPath, '--import', 'tsx', fileURLToPath(new URL('./client.ts', import.meta.url))].join(' ');

export const routes: readonly Route[] = [
  {
    name: 'direct',
    revisions: REVISIONS,
    async open() {
      const fixture = await serveFixture();
      return { target: { server: fixture.url }, close: fixture.close };
    },
  },
  { name: 'http', like: 'direct', revisions: REVISIONS, open: () => throughHttp() },
  { name: 'stdio', like: 'direct', revisions: REVISIONS, open: () => through({ command: [...fixtureCommand()] }) },
  { name: 'legacy client, legacy server', revisions: [LEGACY], open: () => throughHttp('legacy') },
  {
    name: 'legacy client, legacy server over stdio',
    revisions: [LEGACY],
    open: () => through({ command: [...fixtureCommand('--era', 'legacy')] }),
  },
  { name: 'legacy client, modern server', revisions: [LEGACY], open: () => throughHttp('modern') },
  { name: 'modern client, legacy server', revisions: [MODERN], open: () => throughHttp('legacy', true) },
  {
    name: "the suite's own server, direct",
    revisions: REVISIONS,
    measure: true,
    async open() {
      const { url, close } = await serveEverything();
      return { target: { server: url }, close };
    },
  },
  {
    name: "the suite's own server",
    like: "the suite's own server, direct",
    revisions: REVISIONS,
    async open() {
      const server = await serveEverything();
      return await through({ url: server.url }, server);
    },
  },
  {
    // As a client starts it that has the server in its settings: both sides of the gateway over standard input and output.
    name: "the suite's own server, over stdio",
    like: "the suite's own server, direct",
    revisions: REVISIONS,
    async open() {
      const server = await serveEverything();
      const dir = await mkdtemp(join(tmpdir(), 'tb-own-server-'));
      const config = join(dir, 'tollbridge.yaml');
      await writeFile(config, 'rules: [{ id: all, when: {}, then: allow }]\n');
      const words = ['--config', config, '--data', join(dir, 'data'), 'mcp', '--name', 'own', '--url', server.url];
      return await through(
        { command: [process.execPath, ...PROGRAM, ...words] },
        {
          async close() {
            await server.close();
            await rm(dir, { recursive: true, force: true, maxRetries: 5 });
          },
        },
      );
    },
  },
  {
    name: 'southbound',
    asClient: true,
    revisions: REVISIONS,
    open: async () => ({ target: { client: CLIENT }, close: async () => {} }),
  },
];

/** Empty for every route within one era. */
export const DIFFERENCES: readonly { readonly route: string; readonly scenario: string; readonly why: string }[] = [
  {
    route: 'modern client, legacy server',
    scenario: 'input-required-result-basic-elicitation',
    why: 'the scenario wants a question under the name its own server gives it; servers of the legacy era give them none',
  },
];
