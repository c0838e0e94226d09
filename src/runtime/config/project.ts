/**
 * A `tollbridge.yaml` in a working directory, which may have come with a cloned repository. It counts only once a person has
 * trusted it, and even then it holds nothing but rules that block, ask or defer, in itself and in files beside it.
 * Until then it is not even parsed.
 */
import { constants } from 'node:fs';
import { lstat, open, realpath } from 'node:fs/promises';
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { isMap, isScalar, parseDocument } from 'yaml';
import { Fault } from '../../model/faults.ts';
import { loadPolicies, type PolicyFile } from '../../policy/rules/load.ts';
import { yamlWords } from '../../policy/rules/yaml-errors.ts';
import { digestOf, readTrust, type Trusted, type TrustedFile, type TrustStore, trustedAt } from './trust.ts';
import { CONFIG_NAME, type UserPaths } from './user-paths.ts';

/**
 * `absent`: there is none. `untrusted`: it counts for nothing, and `declined` is one the user saw and did not trust.
 * `trusted`: its rules are in force. `changed`, `gone`: it is not what was trusted; the rules that were trusted stay in
 * force.
 */
export type ProjectState = 'absent' | 'untrusted' | 'declined' | 'trusted' | 'changed' | 'gone';

export interface Project {
  readonly path: string;
  readonly state: ProjectState;
  /** Why it could not be trusted as it is: not a plain file, or too large. */
  readonly problem?: string;
  /** Files whose rules are in force, as they were trusted. */
  readonly files: readonly string[];
}

/**
 * Limit for all of its files together: they are parsed whenever the rules are loaded, and a person has to read them.
 */
const MOST_BYTES = 64 * 1024;
const MOST_FILES = 32;
const SECTIONS = ['rules', 'policies'];

export async function projectPath(cwd: string): Promise<string> {
  return join(await realpath(cwd).catch(() => cwd), CONFIG_NAME);
}

/** Undefined where the file in the working directory is the configuration itself. */
export async function lookAtProject(cwd: string, paths: UserPaths, file: string): Promise<Project | undefined> {
  const path = await projectPath(cwd);
  if (path === (await realpath(file).catch(() => file))) return undefined;
  const store = await readTrust(paths.trust);
  const trusted = trustedAt(store, path);
  const found = await readPlain(path);
  if (!trusted) return { path, ...untrusted(found, path, store), files: [] };
  const files = trusted.files.map((each) => each.path);
  if (found === undefined) return { path, state: 'gone', files };
  return { path, state: (await isAsTrusted(trusted)) ? 'trusted' : 'changed', files };
}

function untrusted(
  found: Plain | undefined,
  path: string,
  { declined }: TrustStore,
): Pick<Project, 'state' | 'problem'> {
  if (found === undefined) return { state: 'absent' };
  if ('problem' in found) return { state: 'untrusted', problem: found.problem };
  const sha256 = digestOf(found.bytes);
  return { state: declined.some((each) => each.path === path && each.sha256 === sha256) ? 'declined' : 'untrusted' };
}

async function isAsTrusted({ files }: Trusted): Promise<boolean> {
  for (const { path, sha256 } of files) {
    const found = await readPlain(path);
    if (!found || 'problem' in found || digestOf(found.bytes) !== sha256) return false;
  }
  return true;
}

/** The rules a trusted project adds: the pinned copies, whatever the directory holds now. */
export async function pinnedRules(path: string, trustFile: string): Promise<readonly PolicyFile[]> {
  const trusted = trustedAt(await readTrust(trustFile), path);
  return trusted ? rulesIn(trusted.files) : [];
}

/** Everything a person has to see before trusting it, read once, so that the text shown is the text pinned. */
export async function examineProject(path: string): Promise<readonly TrustedFile[]> {
  const found = await readPlain(path);
  if (!found) throw new Fault('not_found', `there is no ${CONFIG_NAME} in ${dirname(path)}`);
  const first = asTrusted(path, found);
  const { policies } = sectionsOf(path, first.text);
  if (policies.length > MOST_FILES) throw refused(path, `it names more than ${MOST_FILES} files`);
  const files = [first];
  for (const name of policies) files.push(await included(dirname(path), path, name));
  const size = files.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);
  if (size > MOST_BYTES) throw refused(path, `with the files it names it has more than ${MOST_BYTES} bytes`);
  await loadPolicies({ files: rulesIn(files) }).catch((thrown: Error) => {
    throw refused(path, thrown.message);
  });
  return files;
}

async function included(dir: string, from: string, name: string): Promise<TrustedFile> {
  const path = resolve(dir, name);
  const real = await realpath(path).catch(() => path);
  const inside = relative(dir, real);
  if (
    isAbsolute(name) ||
    name.startsWith('~') ||
    inside.startsWith(`..${sep}`) ||
    inside === '..' ||
    isAbsolute(inside)
  ) {
    throw refused(from, `it names ${name}, which is not in its directory`);
  }
  const found = await readPlain(real);
  if (!found) throw refused(from, `it names ${name}, and there is no such file`);
  return asTrusted(real, found);
}

function asTrusted(path: string, found: Plain): TrustedFile {
  if ('problem' in found) throw refused(path, found.problem);
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(found.bytes);
    return { path, sha256: digestOf(found.bytes), text };
  } catch {
    throw refused(path, 'it is not valid UTF-8');
  }
}

/** The rules of its files, in a form the policy reads; the first file is the configuration that names the others. */
function rulesIn([first, ...others]: readonly TrustedFile[]): readonly PolicyFile[] {
  if (!first) return [];
  const { rules, policies } = sectionsOf(first.path, first.text);
  // With rules alone the text itself can be read as rules, and a mistake in it has its own line. JSON is YAML too.
  const text = policies.length === 0 ? first.text : JSON.stringify(rules, null, 1);
  return [
    ...(rules === undefined ? [] : [{ name: first.path, text, restricting: true }]),
    ...others.map(({ path, text }) => ({ name: path, text, restricting: true })),
  ];
}

interface ProjectSections {
  readonly rules: unknown;
  readonly policies: readonly string[];
}

function sectionsOf(path: string, text: string): ProjectSections {
  const document = parseDocument(text, { prettyErrors: false });
  const [problem] = [...document.errors, ...document.warnings];
  if (problem) throw refused(path, yamlWords(problem));
  const { contents } = document;
  if (contents === null) return { rules: undefined, policies: [] };
  if (!isMap(contents)) throw refused(path, 'it is not a set of sections');
  const names = contents.items.map(({ key }) => (isScalar(key) ? String(key.value) : '?'));
  const foreign = names.filter((name) => !SECTIONS.includes(name));
  if (foreign.length > 0) {
    throw refused(
      path,
      `it has ${foreign.join(', ')}; a file in a working directory may have rules that block, ask or defer, and policies that name files of them`,
    );
  }
  const { rules, policies = [] } = plainValue(path, document) as Partial<ProjectSections>;
  if (!Array.isArray(policies) || !policies.every((name) => typeof name === 'string' && name !== '')) {
    throw refused(path, 'policies has to be a list of file names');
  }
  const reference = policies.find((name: string) => name.includes('${'));
  if (reference) throw refused(path, `it names ${reference}; nothing is filled in from the environment here`);
  return { rules, policies };
}

function plainValue(path: string, document: ReturnType<typeof parseDocument>): unknown {
  try {
    return document.toJS({ maxAliasCount: 100 });
  } catch (cause) {
    throw refused(path, cause instanceof Error ? cause.message : 'it cannot be read');
  }
}

function refused(path: string, why: string): Fault {
  return new Fault('policy_violation', `${path} cannot be trusted: ${why}`, {
    details: {
      fix: 'keep agents, tools, listeners, secrets and allowing rules in your own file, or name this one with --config to use all of it',
    },
  });
}

type Plain = { readonly bytes: Buffer } | { readonly problem: string };

/**
 * The bytes of a regular file. Links are not followed and opening does not block: a pipe with that name must not hang
 * the process.
 */
async function readPlain(path: string): Promise<Plain | undefined> {
  const found = await lstat(path).catch(() => undefined);
  if (!found) return undefined;
  if (found.isSymbolicLink()) return { problem: 'it is a symbolic link' };
  if (!found.isFile()) return { problem: found.isDirectory() ? 'it is a directory' : 'it is not a plain file' };
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    (cause: NodeJS.ErrnoException) => ({ problem: `it cannot be read (${cause.code})` }),
  );
  if ('problem' in handle) return handle;
  try {
    const opened = await handle.stat();
    if (!opened.isFile()) return { problem: 'it is not a plain file' };
    const buffer = Buffer.alloc(MOST_BYTES + 1);
    let size = 0;
    for (;;) {
      const { bytesRead } = await handle.read(buffer, size, buffer.length - size, size);
      size += bytesRead;
      if (bytesRead === 0 || size === buffer.length) break;
    }
    return size > MOST_BYTES
      ? { problem: `it has more than ${MOST_BYTES} bytes` }
      : { bytes: buffer.subarray(0, size) };
  } finally {
    await handle.close();
  }
}
