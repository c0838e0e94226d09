/** Finds the operation for a method and a path. A fixed segment takes precedence over a parameter in the same position. */
import { routeTable } from '../../../mappings/frames.ts';
import type { KnownOperation, OperationId } from '../revisions/revisions.ts';

export interface Match {
  readonly operation: KnownOperation;
  readonly params: Readonly<Record<string, string>>;
}

export interface Router {
  /** Undefined: no such operation. */
  match(method: string, path: string): Match | undefined;
  operationOf(id: OperationId): KnownOperation | undefined;
  /** Every path below the first segment of an operation, whether or not a resource exists there; a well-known document alone. */
  readonly claims: readonly string[];
}

interface Entry {
  readonly operation: KnownOperation;
  readonly segments: readonly string[];
}

/** Ids travel raw in paths, and this is their whole alphabet. */
const ID = /^[A-Za-z0-9_.-]{1,200}$/;

/** Serves the rows of one table and nothing else; a row that does not define how its requests are handled is an error at start. */
export function createRouter(rows: readonly KnownOperation[]): Router {
  const operations = routeTable(rows).rows;
  const entries = new Map<number, Entry[]>();
  for (const operation of operations) {
    const segments = operation.path.split('/').slice(1);
    const group = entries.get(segments.length) ?? [];
    entries.set(segments.length, group);
    group.push({ operation, segments });
  }
  for (const group of entries.values()) group.sort((a, b) => fixedness(b).localeCompare(fixedness(a)));
  const byId = new Map(operations.map((operation) => [operation.id, operation]));
  const claims = operations.map(({ path }) =>
    path.startsWith('/.well-known/') ? path : `/${path.split('/', 2)[1]}/*`,
  );

  function match(method: string, path: string): Match | undefined {
    const segments = path.split('/').slice(1);
    if (segments.length > 1 && segments.at(-1) === '') segments.pop();
    const wanted = method === 'HEAD' ? 'GET' : method;
    for (const entry of entries.get(segments.length) ?? []) {
      if (entry.operation.method !== wanted) continue;
      const params = paramsOf(entry.segments, segments);
      if (params) return { operation: entry.operation, params };
    }
    return undefined;
  }

  return {
    match,
    operationOf: (id) => byId.get(id),
    claims: [...new Set(claims)],
  };
}

/** `101` for `/v1/{id}/x`: sorted in descending order, the path with the most fixed segments comes first. */
function fixedness({ segments }: Entry): string {
  return segments.map((segment) => (segment.startsWith('{') ? '0' : '1')).join('');
}

function paramsOf(pattern: readonly string[], segments: readonly string[]): Record<string, string> | undefined {
  const params: Record<string, string> = {};
  for (const [at, wanted] of pattern.entries()) {
    const segment = segments[at] ?? '';
    if (!wanted.startsWith('{')) {
      if (wanted !== segment) return undefined;
    } else if (ID.test(segment)) {
      params[wanted.slice(1, -1)] = segment;
    } else {
      return undefined;
    }
  }
  return params;
}
