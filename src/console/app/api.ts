/** Requests to the gateway. The session's second secret is kept in this origin's storage and sent with each of them. */

const PROOF = 'tollbridge-console-proof';
const VERSION = 'agents-protocol-2026-10-11';

export interface Me {
  readonly actor: { readonly id: string; readonly kind: string; readonly scopes: readonly string[] };
  readonly role: 'viewer' | 'approver' | 'admin';
  readonly how: string;
  readonly expires_at: string;
}

export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly details: Record<string, unknown>;
  constructor(status: number, code: string, message: string, details: Record<string, unknown> = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.details = details;
  }
}

export function headers(): Record<string, string> {
  return {
    'harn-agents-protocol-version': VERSION,
    'x-tollbridge-console': localStorage.getItem(PROOF) ?? '',
  };
}

/** Called when the gateway no longer knows this session. */
let ended: () => void = () => {};
export function onSessionEnd(then: () => void): void {
  ended = then;
}

/** Calls `then` when another tab of this origin signs in or out: all tabs have one session. */
export function onSessionChange(then: () => void): void {
  addEventListener('storage', ({ key }) => {
    if (key === PROOF || key === null) then();
  });
}

export async function call<T>(path: string, init: RequestInit & { json?: unknown } = {}): Promise<T> {
  const { json, ...rest } = init;
  const response = await fetch(path, {
    ...rest,
    redirect: 'error',
    method: init.method ?? (json === undefined ? 'GET' : 'POST'),
    headers: { ...headers(), ...(json !== undefined && { 'content-type': 'application/json' }) },
    ...(json !== undefined && { body: JSON.stringify(json) }),
  });
  if (!response.ok) throw await failure(response);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

/** The beginning of a text; undefined where it is not shown to this session. */
export async function textAt(path: string, most: number): Promise<string | undefined> {
  const response = await fetch(path, { redirect: 'error', headers: { ...headers(), range: `bytes=0-${most - 1}` } });
  return response.ok ? (await response.text()).slice(0, most) : undefined;
}

export async function failure(response: Response): Promise<ApiError> {
  const body = (await response.json().catch(() => ({}))) as { error?: Record<string, unknown> };
  const { code, message, details } = body.error ?? {};
  if (response.status === 401) ended();
  return new ApiError(
    response.status,
    String(code ?? response.status),
    String(message ?? `the gateway answered ${response.status}`),
    (details as Record<string, unknown>) ?? {},
  );
}

/** What a provider's answer needs and is in no address. Only this tab has it, until it is used. */
const BINDING = 'tollbridge-console-oidc';

/** Goes to the provider; the page comes back as `/sign-in?code=…`. */
export async function beginOidc(): Promise<void> {
  const { location: to, binding } = await call<{ location: string; binding: string }>('/console/oidc', { json: {} });
  sessionStorage.setItem(BINDING, binding);
  location.assign(to);
}

/** The provider's answer in the address, if that is how the page was opened. */
export function oidcAnswer(query: URLSearchParams): SignInHow | undefined {
  const [code, state, iss] = ['code', 'state', 'iss'].map((name) => query.get(name) ?? undefined);
  if (!code || !state) return undefined;
  const binding = sessionStorage.getItem(BINDING) ?? '';
  sessionStorage.removeItem(BINDING);
  return { oidc: { code, state, binding, ...(iss && { iss }) } };
}

export type SignInHow =
  | { readonly code: string }
  | { readonly key: string }
  | {
      readonly oidc: { readonly code: string; readonly state: string; readonly binding: string; readonly iss?: string };
    };

export async function signIn(how: SignInHow): Promise<Me> {
  const { proof, ...me } = await call<Me & { proof: string }>('/console/session', { json: how });
  localStorage.setItem(PROOF, proof);
  return me;
}

export async function whoAmI(): Promise<Me | undefined> {
  if (!localStorage.getItem(PROOF)) return undefined;
  return await call<Me>('/console/session').catch((thrown) => {
    if (thrown instanceof ApiError && thrown.status === 401) return undefined;
    throw thrown;
  });
}

export async function signOut(): Promise<void> {
  await call('/console/session', { method: 'DELETE' }).catch(() => {});
  localStorage.removeItem(PROOF);
}

export interface Page<T> {
  readonly data: readonly T[];
  readonly page: { readonly has_more: boolean; readonly next_cursor: string | null };
}

/** Every row of a list, up to a bound. */
export async function all<T>(path: string, most = 2000): Promise<readonly T[]> {
  const found: T[] = [];
  let cursor = '';
  do {
    const join = path.includes('?') ? '&' : '?';
    const { data, page } = await call<Page<T>>(`${path}${join}limit=200${cursor && `&cursor=${cursor}`}`);
    found.push(...data);
    cursor = page.has_more ? (page.next_cursor ?? '') : '';
  } while (cursor && found.length < most);
  return found;
}

export interface Newest<T> {
  readonly data: readonly T[];
  readonly next: string | null;
  /** Of sessions: the newest task of each, by the session's id. */
  readonly latest?: Readonly<Record<string, Task>>;
}

export interface Task {
  readonly id: string;
  readonly session_id: string;
  readonly status: string;
  readonly created_at: string;
  readonly assigned_agent_id?: string | null;
  readonly input?: unknown;
  readonly replay?: unknown;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

export type Listed = 'session' | 'task' | 'receipt';

/** The newest of a kind, and below them those before `after`. */
export async function newest<T>(object: Listed, after = ''): Promise<Newest<T>> {
  return await call<Newest<T>>(`/console/api/newest/${object}${after && `/${after}`}`);
}

export function holds(me: Me, scope: string): boolean {
  return ['*', scope, `${scope.split(':')[0]}:*`].some((word) => me.actor.scopes.includes(word));
}
