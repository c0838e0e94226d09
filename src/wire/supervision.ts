/**
 * Which processes of this machine are agents under supervision. Each process that supervises writes a small file into its data
 * directory: its own id, the children it started, and its parent where that is the agent. A command that speaks for a person looks
 * there, and at its own ancestors, before it does. A child can clear its environment, but not its ancestry.
 *
 * This keeps an agent from approving itself by mistake or by instruction. It is no wall: a program that runs as the same user can
 * write that user's files.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MARK } from './descendants.ts';

interface Record {
  readonly pid: number;
  /** Tells a process from a later one with the same number; null where the system does not say. */
  readonly started: string | null;
  readonly children: readonly number[];
  readonly parent: number | null;
}

const MOST_CHILDREN = 1_000;
const DIRECTORY = 'running';

/** Everything this process has started; numbers stay, because what a child left behind keeps its session and group. */
const children = new Set<number>();
const records = new Set<() => void>();

/** Told by whatever starts programs. */
export function noteChild(pid: number): void {
  if (children.size >= MOST_CHILDREN) children.delete(children.values().next().value as number);
  children.add(pid);
  for (const write of records) write();
}

/** Says in this data directory that this process supervises, for as long as it runs. */
export function superviseIn(dataDir: string, how: { readonly parentIsAgent?: boolean } = {}): void {
  const directory = join(dataDir, DIRECTORY);
  const path = join(directory, `${process.pid}.json`);
  const write = () => {
    const record: Record = {
      pid: process.pid,
      started: processOf(process.pid)?.started ?? null,
      children: [...children],
      parent: how.parentIsAgent ? process.ppid : null,
    };
    writeFileSync(`${path}.new`, JSON.stringify(record), { mode: 0o600 });
    renameSync(`${path}.new`, path);
  };
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  write();
  records.add(write);
  // A process that is killed leaves its file; whoever reads it sees that the process is gone.
  process.once('exit', () => rmSync(path, { force: true }));
}

/** Why this process counts as part of a supervised agent; undefined when it does not. */
export function whySupervised(dataDir: string): string | undefined {
  if (process.env[MARK] !== undefined) return 'it was started by an agent under supervision';
  const line = ancestry();
  if (!line) return 'its parent processes cannot be listed, so nothing tells it from an agent under supervision';
  const marked = line.find(({ pid }) => hasMark(pid));
  if (marked) return `process ${marked.pid} above it is an agent under supervision`;
  const [self, ...above] = line as [Process, ...Process[]];
  for (const { pid, children: started, parent } of recordsIn(dataDir)) {
    if (above.some((each) => each.pid === pid || started.includes(each.pid))) {
      return `it runs below process ${pid}, which supervises an agent`;
    }
    // An orphan has lost its parents; its session and its group still are those of the child it came from.
    if (started.includes(self.session) || started.includes(self.group)) {
      return `it belongs to an agent that process ${pid} supervises`;
    }
    // The agent may be what an editor or a terminal is part of: a person at a terminal is told from it by the terminal.
    if (parent !== null && !process.stdin.isTTY && above.some((each) => each.pid === parent)) {
      return `it runs below process ${parent}, an agent that process ${pid} supervises`;
    }
  }
  return undefined;
}

/** Of processes that still run. */
function recordsIn(dataDir: string): readonly Record[] {
  const directory = join(dataDir, DIRECTORY);
  let names: readonly string[];
  try {
    names = readdirSync(directory);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw cause;
  }
  return names.flatMap((name) => {
    if (!/^\d+\.json$/.test(name) || name === `${process.pid}.json`) return [];
    const record = readRecord(join(directory, name));
    if (!record) return [];
    const now = processOf(record.pid);
    if (now && (record.started === null || now.started === null || now.started === record.started)) return [record];
    rmSync(join(directory, name), { force: true });
    return [];
  });
}

function readRecord(path: string): Record | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Record;
  } catch {
    // Removed by its process in this moment.
    return undefined;
  }
}

interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  readonly started: string | null;
}

/** This process and everything above it. Undefined where not even this process can be looked at. */
function ancestry(): readonly Process[] | undefined {
  const line: Process[] = [];
  for (let pid = process.pid; pid > 1 && line.length < 1_000; ) {
    const found = processOf(pid);
    // Processes of other users may be hidden; an agent runs as this one.
    if (!found) break;
    line.push(found);
    pid = found.parent;
  }
  return line.length > 0 ? line : undefined;
}

function processOf(pid: number): Process | undefined {
  return process.platform === 'linux' ? fromProc(pid) : fromPs(pid);
}

function fromProc(pid: number): Process | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The name stands in parentheses and may hold anything, so the fields are counted from behind it.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [parent, group, session] = fields.slice(1, 4).map(Number) as [number, number, number];
    return { pid, parent, group, session, started: fields[19] ?? null };
  } catch {
    return undefined;
  }
}

function fromPs(pid: number): Process | undefined {
  try {
    const text = execFileSync('/bin/ps', ['-o', 'ppid=,pgid=,lstart=', '-p', String(pid)], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const [, parent, group, started] = /^\s*(\d+)\s+(\d+)\s+(.*\S)\s*$/.exec(text) ?? [];
    return { pid, parent: Number(parent), group: Number(group), session: 0, started: started ?? null };
  } catch {
    return undefined;
  }
}

/** The environment a process was started with, where the system shows it. */
function hasMark(pid: number): boolean {
  if (process.platform !== 'linux') return false;
  try {
    const environment = readFileSync(`/proc/${pid}/environ`, 'latin1');
    return environment.split('\0').some((each) => each.startsWith(`${MARK}=`));
  } catch {
    return false;
  }
}
