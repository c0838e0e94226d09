/**
 * Files of working directories that the user trusts, each as it was when the user saw it. The rules in force are the
 * copies kept here and never those in the directory: a file that changed, or was replaced between two reads, changes
 * nothing until the user has seen it again, and an agent that edits or deletes the file cannot lift its rules.
 */
import { createHash } from 'node:crypto';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Fault } from '../../model/faults.ts';
import { NonEmpty } from '../../model/schema.ts';
import { type Static, Type } from '../../model/type.ts';
import { check } from '../../model/validate.ts';
import { requireOwn } from './file-owner.ts';

const closed = { additionalProperties: false };
const TrustedFile = Type.Object({ path: NonEmpty, sha256: NonEmpty, text: Type.String() }, closed);
const Trusted = Type.Object(
  {
    /** The configuration in the working directory; `files` begins with it and goes on with those it names. */
    path: NonEmpty,
    trusted_at: NonEmpty,
    files: Type.Array(TrustedFile, { minItems: 1 }),
  },
  closed,
);
const Declined = Type.Object({ path: NonEmpty, sha256: NonEmpty }, closed);
const TrustShape = Type.Object(
  { version: Type.Literal(1), trusted: Type.Array(Trusted), declined: Type.Array(Declined) },
  closed,
);
export type TrustedFile = Static<typeof TrustedFile>;
export type Trusted = Static<typeof Trusted>;
export type TrustStore = Static<typeof TrustShape>;

const NOTHING: TrustStore = { version: 1, trusted: [], declined: [] };

/**
 * An unreadable trust file is an error: the pinned rules are then unknown, and running without them would be less
 * strict.
 */
export async function readTrust(file: string): Promise<TrustStore> {
  const text = await readFile(file, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOENT' || cause.code === 'ENOTDIR') return undefined;
    throw new Fault('invalid_request', `cannot read ${file}, which says what you trust: ${cause.code}`);
  });
  if (text === undefined) return NOTHING;
  await requireOwn(file);
  const store = parsed(text, file);
  for (const { path, sha256, text: kept } of store.trusted.flatMap(({ files }) => files)) {
    if (digestOf(kept) === sha256) continue;
    throw damaged(file, `what it keeps of ${path} is not what you trusted`);
  }
  return store;
}

function parsed(text: string, file: string): TrustStore {
  try {
    return check(TrustShape, JSON.parse(text), file);
  } catch {
    throw damaged(file, 'it is not what tollbridge writes there');
  }
}

function damaged(file: string, why: string): Fault {
  return new Fault('invalid_request', `${file} says what you trust and cannot be used: ${why}`, {
    details: { fix: `remove ${file}, and run "tollbridge trust" again in the directories you trust` },
  });
}

export async function writeTrust(file: string, store: TrustStore): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const beside = `${file}.${process.pid}.tmp`;
  try {
    await writeFile(beside, `${JSON.stringify(store, null, 2)}\n`, { mode: 0o600, flag: 'wx' });
    await rename(beside, file);
  } catch (cause) {
    await rm(beside, { force: true });
    throw cause;
  }
}

export function trustedAt(store: TrustStore, path: string): Trusted | undefined {
  return store.trusted.find((each) => each.path === path);
}

/** The store with this entry in place of an earlier one for the same path. */
export function withTrusted(store: TrustStore, trusted: Trusted): TrustStore {
  const rest = withoutTrusted(store, trusted.path);
  return { ...rest, trusted: [...rest.trusted, trusted] };
}

export function withoutTrusted(store: TrustStore, path: string): TrustStore {
  return {
    ...store,
    trusted: store.trusted.filter((each) => each.path !== path),
    declined: store.declined.filter((each) => each.path !== path),
  };
}

export function withDeclined(store: TrustStore, path: string, sha256: string): TrustStore {
  return { ...store, declined: [...store.declined.filter((each) => each.path !== path), { path, sha256 }] };
}

export function digestOf(content: string | Buffer): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`;
}
