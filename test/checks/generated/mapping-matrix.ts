/**
 * The cross-protocol matrix, from nothing but the tables: which word of ours is which word of theirs, and what is declared of each cell. `npm run matrix` writes it to
 * `mappings/MATRIX.md`; a test holds the two together.
 */
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import * as a2a from '../../../mappings/a2a.ts';
import * as a2aOld from '../../../mappings/a2a-0.3.ts';
import * as acp from '../../../mappings/acp.ts';
import * as acpHarn from '../../../mappings/acp-harn.ts';
import * as ahp from '../../../mappings/ahp.ts';
import * as harn from '../../../mappings/harn.ts';
import * as mcp from '../../../mappings/mcp.ts';
import type { MappingRow } from '../../../mappings/row.ts';
import * as runs from '../../../mappings/runs.ts';
import { FAULT_KINDS } from '../../../src/model/faults.ts';
import { TASK_STATES } from '../../../src/model/words.ts';
import { liveMatrix } from './live-matrix.ts';

type Cell = (word: string) => readonly string[];
interface Column {
  readonly title: string;
  readonly cell: Cell;
}

/** A word with its way: `a ->` is only understood, `<- a` only sent. */
const spelled = (wire: string, dir: string) => (dir === '->' ? `${wire} ->` : dir === '<-' ? `<- ${wire}` : wire);

const byRows =
  ({ rows }: { readonly rows: readonly MappingRow<string, string>[] }): Cell =>
  (word) =>
    rows.flatMap(({ wire, core, dir }) => (core === word ? [spelled(wire, dir)] : []));

interface Facts {
  readonly wire: string;
  readonly dir?: string;
  readonly facts?: readonly string[];
}
const byFacts =
  (...tables: readonly (readonly Facts[])[]): Cell =>
  (word) =>
    tables.flat().flatMap(({ wire, dir = '<->', facts = [] }) => (facts.includes(word) ? [spelled(wire, dir)] : []));

const byFault =
  (faults: Readonly<Record<string, unknown>>): Cell =>
  (word) => {
    const found = faults[word] as undefined | string | number | { readonly code?: unknown; readonly status?: unknown };
    if (found === undefined) return [];
    if (typeof found !== 'object') return [String(found)];
    return [[found.status, found.code].filter((part) => part !== undefined).join(' ')];
  };

const STATES: readonly Column[] = [
  { title: 'A2A 1.0', cell: byRows(a2a.taskState) },
  { title: 'A2A 0.3', cell: byRows(a2aOld.taskState) },
  { title: 'MCP tasks', cell: byRows(mcp.taskState) },
  { title: 'AHP', cell: byRows(ahp.runStatus) },
  { title: 'runs', cell: byRows(runs.runState) },
];

const EVENTS: readonly Column[] = [
  { title: 'ACP', cell: byFacts(acp.UPDATES, acpHarn.HARN_UPDATES as readonly Facts[]) },
  {
    title: 'A2A 1.0',
    cell: (word) =>
      (a2a.EVENTS as readonly { core: string; wire: string }[]).flatMap(({ core, wire }) =>
        core === word ? [wire] : [],
      ),
  },
  { title: 'AHP', cell: byFacts(ahp.EVENTS as readonly Facts[]) },
  { title: 'runs', cell: byFacts(runs.EVENTS as readonly Facts[]) },
];

const FAULTS: readonly Column[] = [
  { title: 'Agents Protocol', cell: byFault(harn.faults) },
  { title: 'ACP', cell: byFault(acp.faults) },
  { title: 'A2A', cell: byFault(a2a.faults) },
  { title: 'MCP', cell: byFault(mcp.faults) },
  { title: 'AHP', cell: byFault(ahp.faults) },
  { title: 'runs', cell: byFault(runs.FAULTS) },
];

/** Every event of ours that some table speaks of. */
function events(): readonly string[] {
  const reported = [acp.UPDATES, acpHarn.HARN_UPDATES, ahp.EVENTS, runs.EVENTS] as readonly (readonly Facts[])[];
  const all = [...reported.flat().flatMap(({ facts = [] }) => facts), ...a2a.EVENTS.map(({ core }) => core)];
  return [...new Set(all)].sort();
}

export function matrix(): string {
  return `# The cross-protocol matrix

Generated from the tables by \`npm run matrix\`; do not edit. \`word ->\` is understood when it comes in and never sent, \`<- word\` is only ever sent. A
dash: this protocol has no word of its own, and what is not modelled rides along in \`ext\`. The Agents Protocol's words are our own.

## States of a task

${grid('task', TASK_STATES, STATES)}
## Events

${grid('event', events(), EVENTS)}
## What can go wrong

${grid('fault', FAULT_KINDS, FAULTS)}
${liveMatrix()}`;
}

function grid(title: string, words: readonly string[], columns: readonly Column[]): string {
  const rows = words.map((word) => [
    `\`${word}\``,
    ...columns.map(({ cell }) => {
      const found = cell(word);
      return found.length > 0 ? found.map((each) => `\`${each}\``).join(', ') : '–';
    }),
  ]);
  const all = [[title, ...columns.map((column) => column.title)], columns.map(() => '---').concat('---'), ...rows];
  return `${all.map((row) => `| ${row.join(' | ')} |`).join('\n')}\n`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await writeFile(new URL('../../../mappings/MATRIX.md', import.meta.url), matrix());
}
