/**
 * Sessions of older clients opened and dropped, a hundred at a time, at the built gateway with a server behind it that has a program
 * for each: how many programs are left a minute later, and how much memory. `npm run sessions` does it with the idle time that
 * is configured by default.
 */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually } from '../../support/eventually.ts';
import { aClient } from '../../support/mcp/leaving-client.ts';
import { startMeasured, steered } from '../../support/mcp/measured-gateway.ts';
import { isAlive, programsIn } from '../../support/upstreams/journal.ts';

const MIB = 1024 * 1024;
const AT_ONCE = 10;
const WITHIN_MS = 60_000;

export interface Figures {
  readonly started: number;
  readonly left: number;
  readonly seconds: number;
  readonly residentMib: number;
  readonly heapMib: number;
}

/** `door`: the section of the MCP door. The figures at the start, and after each round. */
export async function droppedSessions(
  rounds: number,
  sessions: number,
  door: object = {},
): Promise<readonly Figures[]> {
  const { url, headers, child, dir, close } = await startMeasured((at) => ({
    tools: { steered: steered(join(at, 'journal')) },
    doors: { mcp: door },
  }));
  const journal = join(dir, 'journal');
  try {
    const memory = async () => {
      child.kill('SIGUSR2');
      const text = await (await fetch(`${url}/metrics`, { headers })).text();
      const of = (name: string) => Math.round(Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]) / MIB);
      return { residentMib: of('process_resident_memory_bytes'), heapMib: of('nodejs_heap_size_used_bytes') };
    };
    const figures: Figures[] = [];
    for (let round = 0; round <= rounds; round += 1) {
      const before = round === 0 ? 0 : programsIn(journal).length;
      for (let open = 0; round > 0 && open < sessions; open += AT_ONCE) {
        const clients = Array.from({ length: AT_ONCE }, () => aClient(`${url}/mcp/steered`, headers));
        await Promise.all(clients.map((client) => client.open()));
        for (const client of clients) client.leave();
      }
      const began = performance.now();
      const running = () => programsIn(journal).slice(before).filter(isAlive);
      // One that the gateway started to read the list of tools may stay: it belongs to no session.
      if (round > 0)
        await eventually(() => running().length === 0, 'programs', { timeoutMs: WITHIN_MS }).catch(() => {});
      const seconds = Math.round((performance.now() - began) / 100) / 10;
      const started = round === 0 ? 0 : programsIn(journal).length - before;
      figures.push({ started, left: round === 0 ? 0 : running().length, seconds, ...(await memory()) });
    }
    return figures;
  } finally {
    await close();
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const figures = await droppedSessions(2, Number(process.argv[2] ?? 100));
  for (const figure of figures) process.stdout.write(`${JSON.stringify(figure)}\n`);
  const [, first, second] = figures as [Figures, Figures, Figures];
  process.exitCode = first.left + second.left === 0 && second.residentMib <= first.residentMib * 1.25 ? 0 : 1;
}
