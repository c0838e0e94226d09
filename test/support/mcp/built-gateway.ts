/** The built gateway with the instrumented MCP server behind it, and what became of the two. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CoreEvent } from '../../../src/model/events.ts';
import { checkActs, forgetLogs, readContacts, readEvents } from '../oracle/oracle.ts';
import { type StartedGateway, startGateway, startProgram } from '../process/cli.ts';

const SERVER = join(import.meta.dirname, '../upstreams/mcp-server.mjs');
const RULES = `rules:
  - { id: some, when: { tool: [echo, calls_back, acme/allowed, region] }, then: allow }
  - { id: forced, when: { tool: forced }, then: allow }
  - { id: no-force, when: { tool: forced, arguments: { force: true } }, then: block, say: never by force }
  - { id: no-unknown, when: { effect: unknown }, unless: { tool: [echo, forced, calls_back, acme/allowed, region] }, then: block, say: nobody knows what it does }
`;

export interface Location {
  readonly dir: string;
  readonly data: string;
  readonly config: string;
  readonly contacts: string;
  /** The command of the instrumented server. */
  readonly server: readonly string[];
}

export async function aLocation(more: (location: Omit<Location, 'config'>) => string = () => ''): Promise<Location> {
  const dir = await mkdtemp(join(tmpdir(), 'tb-hostile-mcp-'));
  const [data, contacts, config] = [join(dir, 'data'), join(dir, 'contacts.jsonl'), join(dir, 'tollbridge.yaml')];
  const location = { dir, data, contacts, server: [process.execPath, SERVER, contacts, data] };
  await writeFile(config, `data: ${data}\n${RULES}${more(location)}`);
  return { ...location, config };
}

export type Served = Location & StartedGateway;

export async function serve(
  more: (location: Omit<Location, 'config'>) => string,
  env: Readonly<Record<string, string>> = {},
): Promise<Served> {
  const location = await aLocation(more);
  return { ...location, ...(await startGateway(['--config', location.config], { env, start: startProgram })) };
}

/** How many acts the server has seen. */
export function seen({ contacts }: Pick<Location, 'contacts'>): number {
  return readContacts(contacts).length;
}

/** Why frames of this method were refused, by the log. */
export async function refusals({ data }: Pick<Location, 'data'>, method: string): Promise<string[]> {
  const events: CoreEvent[] = await readEvents(data, ['vendor.tollbridge.decided']);
  return events.flatMap(({ payload }) => {
    const { action, decision } = payload as {
      action: { tool?: string };
      decision: { verdict: string; reason: string };
    };
    return action.tool === method && decision.verdict === 'block' ? [decision.reason] : [];
  });
}

/** What the oracle says of everything so far; the place is gone afterwards. */
export async function judge({ dir, data, contacts }: Location): Promise<string[]> {
  const found = await checkActs(data, readContacts(contacts));
  forgetLogs();
  await rm(dir, { recursive: true, force: true, maxRetries: 3 });
  return found;
}
