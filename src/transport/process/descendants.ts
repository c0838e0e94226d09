/**
 * The running processes of a child: its process group, and descendants that left the group. A child leads a group of
 * its own and carries a mark in its environment, which its descendants inherit; so descendants in a session of their
 * own are found too, where the system shows environments (Linux). Signals only processes of the group or with the mark.
 */
import { readdir, readFile } from 'node:fs/promises';

/** Set in the environment of every child. */
export const MARK = 'TOLLBRIDGE_CHILD';

export interface Descendants {
  /** Ids of running processes. The group's own id stands for it where its members cannot be listed. */
  left(): Promise<readonly number[]>;
  signal(name: 'SIGTERM' | 'SIGKILL'): Promise<void>;
}

export function descendantsOf(pid: number, mark: string): Descendants {
  // The system may reuse a free id: once the group was empty it is never signalled again.
  let empty = false;
  const groupIsThere = () => {
    empty ||= !exists(-pid);
    return !empty;
  };
  const left = async () => {
    const there = groupIsThere();
    const found = await listed(pid, mark);
    if (found) {
      if (there && !found.some(({ group }) => group === pid)) empty = true;
      return found.map(({ id }) => id);
    }
    return there ? [pid] : [];
  };
  return {
    left,
    async signal(name) {
      if (groupIsThere()) send(-pid, name);
      for (const { id, group } of (await listed(pid, mark)) ?? []) if (group !== pid) send(id, name);
    },
  };
}

interface Found {
  readonly id: number;
  readonly group: number;
  readonly marks: readonly string[];
}

/** Undefined where the system does not list its processes. */
async function listed(pid: number, mark: string): Promise<readonly Found[] | undefined> {
  if (process.platform !== 'linux') return undefined;
  const found = await allProcesses();
  return found?.filter(({ group, marks }) => group === pid || marks.includes(mark));
}

let scanning: Promise<unknown> = Promise.resolve();
let next: Promise<readonly Found[] | undefined> | undefined;

/**
 * All running processes. Many children end at once when their gateway stops: callers that ask during a scan share the next one, which
 * begins after every one of them has asked.
 */
function allProcesses(): Promise<readonly Found[] | undefined> {
  next ??= scanning.then(() => {
    next = undefined;
    const scan = scanProcesses();
    scanning = scan;
    return scan;
  });
  return next;
}

async function scanProcesses(): Promise<readonly Found[] | undefined> {
  const names = await readdir('/proc').catch(() => undefined);
  if (!names) return undefined;
  const ids = names.filter((name) => /^\d+$/.test(name)).map(Number);
  const found: Found[] = [];
  for (let from = 0; from < ids.length; from += AT_ONCE) {
    const looked = await Promise.all(ids.slice(from, from + AT_ONCE).map(look));
    found.push(...looked.filter((each) => each !== undefined));
  }
  return found;
}

/** Each takes a file descriptor, and the process needs some for its clients. */
const AT_ONCE = 32;

async function look(id: number): Promise<Found | undefined> {
  if (id === process.pid) return undefined;
  try {
    const stat = await readFile(`/proc/${id}/stat`, 'latin1');
    // The name in parentheses may contain anything, so fields are counted from the last parenthesis.
    const [state, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (state === 'Z' || state === 'X') return undefined;
    const environment = await readFile(`/proc/${id}/environ`, 'latin1').catch(() => '');
    const marks = environment.split('\0').filter((each) => each.startsWith(`${MARK}=`));
    return { id, group: Number(group), marks: marks.map((each) => each.slice(MARK.length + 1)) };
  } catch {
    return undefined;
  }
}

function exists(target: number): boolean {
  try {
    process.kill(target, 0);
    return true;
  } catch (cause) {
    return (cause as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function send(target: number, name: 'SIGTERM' | 'SIGKILL'): void {
  try {
    process.kill(target, name);
  } catch {
    // Exited between the check and the signal, as wanted.
  }
}
