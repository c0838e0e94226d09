/**
 * What paths lead to, asked of the file system. A decision asks anew, because a link may point elsewhere by the next act; a
 * comparison of many recorded acts asks once, so that all of them are compared on the same state of the disk.
 */
import { lstatSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { Memo } from '../../model/values/memo.ts';

type Found = 'there' | 'link' | 'nothing';

export interface Disk {
  /** Paths with their links followed, as far as they have been. */
  readonly followed: Pick<Map<string, string>, 'get'> & { set(path: string, real: string): void };
  look(path: string): Found;
  /** The path of an existing file or directory, through all its links. */
  real(path: string): string;
  /** Whether `README` and `readme` are the same in that directory. */
  ignoresCase(dir: string): boolean;
  /** Values by their keys that depend on nothing else but the disk and the name of the set. */
  set<T extends object>(name: string): Keep<T>;
}

export type Keep<T> = (key: string, make: () => T) => T;

/** For one act. */
export function createDisk(): Disk {
  return { followed: new Map(), look, real, ignoresCase, set: () => (_, make) => make() };
}

const SNAPSHOT_ENTRIES = 16_384;
const SETS = 16;

/** For many acts: each answer of the file system is kept, and nothing is looked for in a directory that is not there. */
export function createDiskSnapshot(): Disk {
  const seen = new Memo<string, Found>(SNAPSHOT_ENTRIES);
  const reals = new Memo<string, string>(SNAPSHOT_ENTRIES);
  const cases = new Memo<string, boolean>(SNAPSHOT_ENTRIES);
  const sets = new Memo<string, Keep<object>>(SETS);
  const disk: Disk = {
    followed: new Memo(SNAPSHOT_ENTRIES),
    look: (path) => kept(seen, path, () => (seen.get(dirname(path)) === 'nothing' ? 'nothing' : look(path))),
    real: (path) => kept(reals, path, () => real(path)),
    ignoresCase: (dir) => kept(cases, dir, () => probe(dir, disk)),
    // A name stands for values of one type.
    set: <T extends object>(name: string) =>
      kept(sets, name, () => {
        const values = new Memo<string, object>(SNAPSHOT_ENTRIES);
        return (key, make) => kept(values, key, make);
      }) as unknown as Keep<T>,
  };
  return disk;
}

function kept<V>(map: Memo<string, V>, key: string, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}

/** Avoids exceptions for missing files: most lookups would throw one. */
function look(path: string): Found {
  try {
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (!found) return 'nothing';
    return found.isSymbolicLink() ? 'link' : 'there';
  } catch {
    return 'nothing';
  }
}

function real(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    return path;
  }
}

const REMEMBERED = 1_024;
const tested = new Memo<string, boolean>(REMEMBERED);

/** Tested on disk once. */
function ignoresCase(dir: string): boolean {
  return kept(tested, dir, () => probe(dir, { look }));
}

/** A directory that does not exist is as its parent is. */
function probe(dir: string, disk: Pick<Disk, 'look'>): boolean {
  for (let at = dir; at !== dirname(at); at = dirname(at)) {
    const name = basename(at);
    const other = name === name.toLowerCase() ? name.toUpperCase() : name.toLowerCase();
    if (other === name || disk.look(at) === 'nothing') continue;
    try {
      const [one, two] = [lstatSync(at, { bigint: true }), lstatSync(join(dirname(at), other), { bigint: true })];
      return one.ino === two.ino && one.dev === two.dev;
    } catch {
      // The other spelling is a different file.
      return false;
    }
  }
  return process.platform === 'darwin' || process.platform === 'win32';
}
