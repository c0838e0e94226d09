/**
 * Five tool servers of which one hangs, one crashes and one is slow, behind the built gateway: how long `/mcp` takes to list and to
 * call the healthy ones, at the start and later, for a client of others. `npm run servers` prints the figures; none may be a second.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { eventually } from '../../support/eventually.ts';
import { startMeasured, steered } from '../../support/mcp/measured-gateway.ts';

const WITHIN_MS = 1_000;
const TIMES = 20;
const HEALTHY = ['one__echo', 'one__grow', 'two__echo', 'two__grow'];

const figures: Record<string, number> = {};
async function timed<T>(what: string, run: () => Promise<T>): Promise<T> {
  const began = performance.now();
  const came = await run();
  figures[what] = Math.max(figures[what] ?? 0, Math.round(performance.now() - began));
  return came;
}

const gateway = await startMeasured((dir) => ({
  tools: {
    one: steered(join(dir, 'one')),
    two: steered(join(dir, 'two')),
    hangs: steered(join(dir, 'hangs'), '--hang'),
    crashes: steered(join(dir, 'crashes'), '--crash'),
    slow: steered(join(dir, 'slow'), '--slow', join(dir, 'go')),
  },
  rules: [{ id: 'all', when: { kind: 'tool' }, then: 'allow' }],
}));
try {
  const names = async (client: Client) => (await client.listTools()).tools.map(({ name }) => name);
  const opened = async () => {
    const client = new Client({ name: 'outsider', version: '1' });
    const requestInit = { headers: gateway.headers };
    await client.connect(new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp`), { requestInit }) as never);
    return client;
  };
  const hasHealthy = async (client: Client) => {
    const listed = await names(client);
    return HEALTHY.every((name) => listed.includes(name));
  };
  const call = async (client: Client, name: string) => {
    const { isError } = await client.callTool({ name, arguments: {} });
    if (isError) throw new Error(`${name} failed`);
  };

  // The gateway listens: its servers have just been started.
  const first = await timed('at the start: until the healthy servers are listed', async () => {
    const client = await timed('at the start: session', opened);
    await timed('at the start: first list', () => names(client));
    await eventually(() => hasHealthy(client), 'the healthy servers', { timeoutMs: 60_000 });
    return client;
  });
  await timed('at the start: first call', () => call(first, 'one__echo'));
  for (let time = 0; time < TIMES; time += 1) {
    const client = await timed('later: session', opened);
    await timed('later: list', async () => {
      if (!(await hasHealthy(client))) throw new Error('a healthy server is not listed');
    });
    await timed('later: call', () => call(client, 'two__echo'));
    await client.close();
  }
  await writeFile(join(gateway.dir, 'go'), '');
  const came = async () => (await names(first)).includes('slow__echo');
  await timed('the slow server: until it is listed, once it answers', () =>
    eventually(came, 'the slow server', { timeoutMs: 60_000 }),
  );
  await timed('the slow server: call', () => call(first, 'slow__echo'));
  await first.close();
} finally {
  await gateway.close();
}
for (const [what, ms] of Object.entries(figures)) process.stdout.write(`${JSON.stringify({ what, ms })}\n`);
process.exitCode = Object.values(figures).every((ms) => ms < WITHIN_MS) ? 0 : 1;
