/**
 * Which processes of this machine are supervised agents. Each supervising process writes a small file into its data
 * directory: its own id, the children it started, and its parent where that is the agent. A command that answers for a
 * person checks these files against its own ancestors first. A child can clear its environment, but not its ancestry.
 * This keeps an agent from approving its own acts by mistake or by instruction. It is no security boundary: a program
 * that runs as the same user can write that user's files.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { MARK } from './descendants.ts';

interface Record {
  readonly pid: number;
  /** Tells a process from a later one with the same id; null where the system does not report it. */
  readonly started: string | null;
  readonly children: readonly number[];
  readonly parent: number | null;
}

const MOST_CHILDREN = 1_000;
const DIRECTORY = 'running';

/** Ids of all children this process has started; ids stay, because a child's orphans keep its session and group. */
const children = new Set<number>();
const records = new Set<() => void>();

/** Called for every child that is started. */
export function noteChild(pid: number): void {
  if (children.size >= MOST_CHILDREN) children.delete(children.values().next().value as number);
  children.add(pid);
  for (const write of records) write();
}

/** Records in this data directory that this process supervises, until it exits or calls the returned function. */
export function superviseIn(dataDir: string, how: { readonly parentIsAgent?: boolean } = {}): () => void {
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
  // A killed process leaves its file; readers check whether the process still runs.
  const end = () => {
    records.delete(write);
    rmSync(path, { force: true });
  };
  process.once('exit', end);
  return () => {
    process.off('exit', end);
    end();
  };
}

/** The reason why this process counts as part of a supervised agent; undefined when it does not. */
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
    // An orphan has lost its parents, but keeps the session and group of the child it came from.
    if (started.includes(self.session) || started.includes(self.group)) {
      return `it belongs to an agent that process ${pid} supervises`;
    }
    // The agent may be the editor or terminal this command runs in: a terminal on stdin tells a person from the agent.
    if (parent !== null && !process.stdin.isTTY && above.some((each) => each.pid === parent)) {
      return `it runs below process ${parent}, an agent that process ${pid} supervises`;
    }
  }
  return undefined;
}

/** Records of processes that still run. */
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
    // Removed by its process at this moment.
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

/**
 * Names the program that started this process, and no later one with the same process id: its first ancestor that is not a
 * launcher. Undefined where the system does not report it.
 */
export function clientProcess(): string | undefined {
  const [, ...above] = ancestry() ?? [];
  const client = above.find(({ pid }) => !LAUNCHERS.test(nameOf(pid)));
  return client?.started ? `${client.pid}-${client.started.replace(/\W+/g, '-')}` : undefined;
}
const LAUNCHERS = /^(?:-?(?:ba|da|z|fi|k)?sh|npm|npx|env|cmd)\b/;

function nameOf(pid: number): string {
  try {
    if (process.platform === 'linux') return readFileSync(`/proc/${pid}/comm`, 'utf8');
    const ps = ['-o', 'comm=', '-p', String(pid)];
    return basename(execFileSync('/bin/ps', ps, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }));
  } catch {
    return '';
  }
}

/** This process and its ancestors. Undefined where not even this process can be inspected. */
function ancestry(): readonly Process[] | undefined {
  const line: Process[] = [];
  for (let pid = process.pid; pid > 1 && line.length < 1_000; ) {
    const found = processOf(pid);
    // Processes of other users may be hidden; an agent runs as this user.
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
    // The name in parentheses may contain anything, so fields are counted from the last parenthesis.
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

/** Checks the environment a process was started with, where the system shows it. */
function hasMark(pid: number): boolean {
  if (process.platform !== 'linux') return false;
  try {
    const environment = readFileSync(`/proc/${pid}/environ`, 'latin1');
    return environment.split('\0').some((each) => each.startsWith(`${MARK}=`));
  } catch {
    return false;
  }
}
