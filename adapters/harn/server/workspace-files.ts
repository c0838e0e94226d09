/**
 * Files of local workspaces, as tools: each access passes the gate and is recorded like any other call. Never leaves the
 * configured directories, whatever links and path spellings are used, and follows no link when it writes.
 */
import { createHash, randomUUID } from 'node:crypto';
import { lstat, open, readdir, realpath, rename, rm } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Fault, type JsonObject, type Skill, type ToolBackend, type ToolResult } from '../../../src/index.ts';

export const FILE_SERVER = 'workspace-files';
export const READ_FILE = 'read_workspace_file';
export const WRITE_FILE = 'write_workspace_file';

const MOST_BYTES = 1024 * 1024;
const MOST_ENTRIES = 1000;
const MADE = '2026-01-01T00:00:00.000Z';

export function createFileTools(allowed: readonly string[]): ToolBackend {
  return {
    name: FILE_SERVER,
    list: async () => (allowed.length === 0 ? [] : SKILLS),
    effect: (tool) => (tool === READ_FILE ? 'read' : tool === WRITE_FILE ? 'write' : undefined),
    async call({ tool, arguments: args }) {
      try {
        const { root = '', path = '', content = '' } = args as { root?: string; path?: string; content?: string };
        const home = await homeOf(root, allowed);
        return tool === WRITE_FILE ? await write(home, path, content) : await read(home, path);
      } catch (thrown) {
        return failure(thrown);
      }
    },
  };
}

/** The directory that a workspace's root names, if it is below a configured one; otherwise undefined. */
export function localRoot(root: string, allowed: readonly string[]): string | undefined {
  const path = /^file:\/\/\//.test(root) ? pathOf(root) : root;
  if (!path?.startsWith('/')) return undefined;
  const whole = resolve(path);
  return allowed.some((home) => inside(resolve(home), whole)) ? whole : undefined;
}

function pathOf(url: string): string | undefined {
  try {
    return fileURLToPath(url);
  } catch {
    return undefined; // not a path this machine could have
  }
}

function inside(home: string, path: string): boolean {
  return path === home || path.startsWith(home.endsWith(sep) ? home : `${home}${sep}`);
}

/** Checked again as the disk has it: a link inside an allowed directory may lead out of it. */
async function homeOf(root: string, allowed: readonly string[]): Promise<string> {
  const named = localRoot(root, allowed);
  const [real, ...homes] = await Promise.all([named ?? '/', ...allowed].map((path) => realpath(path)));
  if (!named || !homes.some((home) => inside(home, real!)))
    throw new Fault('not_implemented', 'this root is not served');
  return real!;
}

/** Below the home, and nowhere else. */
async function locate(home: string, path: string): Promise<string> {
  const wrong = new Fault('invalid_request', 'the path must stay below the root of the workspace', { param: 'path' });
  if (path.includes('\0') || path.startsWith('/') || path.split(/[/\\]/).includes('..')) throw wrong;
  const wanted = resolve(home, path);
  const parent = wanted === home ? home : await realpath(dirname(wanted));
  const location = wanted === home ? home : join(parent, basename(wanted));
  if (!inside(home, location)) throw wrong;
  return location;
}

async function read(home: string, path: string): Promise<ToolResult> {
  const location = await realpath(await locate(home, path));
  if (!inside(home, location))
    throw new Fault('invalid_request', 'the path leads out of the workspace', { param: 'path' });
  const stat = await lstat(location);
  if (stat.isDirectory()) return { status: 'ok', output: { entries: await entriesOf(home, location) } };
  if (!stat.isFile()) throw new Fault('invalid_request', 'this is neither a file nor a directory', { param: 'path' });
  if (stat.size > MOST_BYTES) throw new Fault('payload_too_large', `a file may have at most ${MOST_BYTES} bytes`);
  const file = await open(location, 'r');
  try {
    const bytes = await file.readFile();
    return { status: 'ok', output: { content: decode(bytes), bytes: bytes.byteLength } };
  } finally {
    await file.close();
  }
}

async function entriesOf(home: string, directory: string) {
  const found = (await readdir(directory, { withFileTypes: true }))
    .filter((entry) => entry.isFile() || entry.isDirectory())
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .slice(0, MOST_ENTRIES);
  return await Promise.all(
    found.map(async (entry) => {
      const path = join(directory, entry.name);
      const size = entry.isFile() ? (await lstat(path)).size : 0;
      return { name: entry.name, path: relative(home, path), kind: entry.isFile() ? 'file' : 'directory', size };
    }),
  );
}

/** Writes a temporary file beside it and renames it: a reader sees the old file or the new one. */
async function write(home: string, path: string, content: string): Promise<ToolResult> {
  const location = await locate(home, path);
  const before = await lstat(location).catch(noneIfAbsent);
  if (location === home || (before && !before.isFile())) {
    throw new Fault('invalid_request', 'only plain files are written', { param: 'path' });
  }
  const bytes = Buffer.from(content);
  if (bytes.byteLength > MOST_BYTES)
    throw new Fault('payload_too_large', `a file may have at most ${MOST_BYTES} bytes`);
  const old = before && before.size <= MOST_BYTES ? await hashOf(location) : null;
  const next = join(dirname(location), `.${randomUUID()}.tmp`);
  try {
    const file = await open(next, 'wx', before ? before.mode & 0o777 : 0o644);
    try {
      await file.writeFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(next, location);
  } catch (thrown) {
    await rm(next, { force: true });
    throw thrown;
  }
  const effect = {
    type: 'fs_write' as const,
    path: relative(home, location),
    operation: before ? ('modify' as const) : ('create' as const),
    before_sha256: old,
    after_sha256: sha256(bytes),
  };
  return { status: 'ok', output: { bytes: bytes.byteLength }, effects: [effect] };
}

async function hashOf(location: string): Promise<string> {
  const file = await open(location, 'r');
  try {
    return sha256(await file.readFile());
  } finally {
    await file.close();
  }
}

function sha256(bytes: Uint8Array): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Fault('invalid_request', 'this file is not UTF-8 text', { param: 'path' });
  }
}

/** Error messages do not contain paths of this machine. */
function failure(thrown: unknown): ToolResult {
  if (thrown instanceof Fault) return { status: 'error', output: null, error: thrown.message, code: thrown.kind };
  const { code } = thrown as NodeJS.ErrnoException;
  if (code === 'ENOENT' || code === 'ENOTDIR') {
    return { status: 'error', output: null, error: 'there is nothing at this path', code: 'not_found' };
  }
  return { status: 'error', output: null, error: `the disk said ${code ?? 'no'}`, code: 'unavailable' };
}

function noneIfAbsent(thrown: NodeJS.ErrnoException): undefined {
  if (thrown.code === 'ENOENT') return undefined;
  throw thrown;
}

function skill(name: string, description: string, properties: JsonObject, required: readonly string[]): Skill {
  return {
    id: `skill_${name}`,
    object: 'skill',
    created_at: MADE,
    updated_at: MADE,
    metadata: {},
    name,
    description,
    input_schema: { type: 'object', properties, required: [...required] },
    output_schema: null,
  };
}

const LOCATION = { root: { type: 'string' }, path: { type: 'string' } };
const SKILLS: readonly Skill[] = [
  skill(READ_FILE, 'Reads a UTF-8 file of a workspace, or lists a directory.', LOCATION, ['root']),
  skill(WRITE_FILE, 'Writes a UTF-8 file of a workspace.', { ...LOCATION, content: { type: 'string' } }, [
    'root',
    'path',
    'content',
  ]),
];
