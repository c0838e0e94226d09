/** From a method and a path to the operation of the table it means. A fixed word beats a parameter in the same place. */
import { OPERATIONS, type Operation, type OperationId } from '../../mappings/harn.ts';

export type KnownOperation = Operation & { readonly id: OperationId };

export interface Match {
  readonly operation: KnownOperation;
  readonly params: Readonly<Record<string, string>>;
}

interface Entry {
  readonly operation: KnownOperation;
  readonly segments: readonly string[];
}

const ENTRIES = new Map<number, Entry[]>();
for (const operation of OPERATIONS as readonly KnownOperation[]) {
  const segments = operation.path.split('/').slice(1);
  const group = ENTRIES.get(segments.length) ?? [];
  ENTRIES.set(segments.length, group);
  group.push({ operation, segments });
}
for (const group of ENTRIES.values()) group.sort((a, b) => fixedness(b).localeCompare(fixedness(a)));

/** `101` for `/v1/{id}/x`: sorted backwards, the most fixed path comes first. */
function fixedness({ segments }: Entry): string {
  return segments.map((segment) => (segment.startsWith('{') ? '0' : '1')).join('');
}

/** Ids travel raw in paths, and this is their whole alphabet. */
const ID = /^[A-Za-z0-9_.-]{1,200}$/;

const ROOTS = new Set(OPERATIONS.map(({ path }) => path.split('/')[1]));

/** True for every path below one of ours, whether or not there is something at it. */
export function isOurs(path: string): boolean {
  return (
    ROOTS.has(path.split('/', 2)[1] ?? '') && (!path.startsWith('/.well-known') || match('GET', path) !== undefined)
  );
}

export function operationOf(id: OperationId): KnownOperation {
  return (OPERATIONS as readonly KnownOperation[]).find((operation) => operation.id === id)!;
}

/** Undefined: no such operation. */
export function match(method: string, path: string): Match | undefined {
  const segments = path.split('/').slice(1);
  if (segments.length > 1 && segments.at(-1) === '') segments.pop();
  const wanted = method === 'HEAD' ? 'GET' : method;
  for (const entry of ENTRIES.get(segments.length) ?? []) {
    if (entry.operation.method !== wanted) continue;
    const params = paramsOf(entry.segments, segments);
    if (params) return { operation: entry.operation, params };
  }
  return undefined;
}

function paramsOf(pattern: readonly string[], segments: readonly string[]): Record<string, string> | undefined {
  const params: Record<string, string> = {};
  for (const [at, wanted] of pattern.entries()) {
    const given = segments[at] ?? '';
    if (!wanted.startsWith('{')) {
      if (wanted !== given) return undefined;
    } else if (ID.test(given)) {
      params[wanted.slice(1, -1)] = given;
    } else {
      return undefined;
    }
  }
  return params;
}
