/**
 * Receives push notifications from peers. Each handoff has an unguessable address and its own credential; a notification only
 * triggers a poll, so a lost, repeated or forged one changes nothing.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { HttpHandler, HttpHost, JsonObject } from '../../../src/index.ts';
import { JSON_LIMITS, readBytes } from '../../../src/transport/http/body.ts';

const PREFIX = '/a2a-push';

export interface Hook {
  /** Below the public URL. */
  readonly path: string;
  readonly token: string;
  readonly credentials: string;
  /** The peer's id for its task, once known: notifications about any other task are refused. */
  expect(taskId: string): void;
  close(): void;
}
export interface Hooks {
  open(onDelivery: (delivery: { readonly id: string }) => void): Hook;
  close(): void;
}

interface Open {
  readonly token: string;
  readonly credentials: string;
  taskId: string | undefined;
  last: string | undefined;
  onDelivery(delivery: { readonly id: string }): void;
}

/** The hooks of one peer, below a path of their own. The path is claimed with the first hook: most peers never get one. */
export function createHooks(http: HttpHost): Hooks {
  const open = new Map<string, Open>();
  const base = `${PREFIX}/${secret()}`;
  let giveBack: (() => void) | undefined;

  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const hook = open.get((request.url ?? '').slice(base.length + 1));
    if (!hook || !knows(request, hook)) return void response.writeHead(404).end();
    if (request.method !== 'POST') return void response.writeHead(405, { allow: 'POST' }).end();
    const bytes = await readBytes(request, JSON_LIMITS.bytes).catch(() => undefined);
    if (!bytes) return void response.writeHead(413, { connection: 'close' }).end();
    if (hook.taskId === undefined || taskIn(bytes) !== hook.taskId) return void response.writeHead(400).end();
    response.writeHead(204).end();
    const id = createHash('sha256').update(bytes).digest('hex');
    // A notification with the same content is a repeat.
    if (hook.last === id) return;
    hook.last = id;
    hook.onDelivery({ id: `sha256:${id}` });
  }

  const handler: HttpHandler = (request, response, next) => void take(request, response).catch(next);

  return {
    open(onDelivery) {
      giveBack ??= http.claim('a2a-push', [{ path: `${base}/*`, handler, listed: false }]);
      // At the end of the path, where another replica sees that the work is done here.
      const id = `${secret()}${http.mark ?? ''}`;
      const hook: Open = { token: secret(), credentials: secret(), taskId: undefined, last: undefined, onDelivery };
      open.set(id, hook);
      return {
        path: `${base}/${id}`,
        token: hook.token,
        credentials: hook.credentials,
        expect(taskId) {
          hook.taskId = taskId;
        },
        close: () => void open.delete(id),
      };
    },
    close: () => giveBack?.(),
  };
}

function secret(): string {
  return randomBytes(24).toString('base64url');
}

/** Peers send the credentials, the token, or both: one correct value is enough, and one wrong value is refused. */
function knows({ headersDistinct }: IncomingMessage, { token, credentials }: Open): boolean {
  const matches = [
    ...(headersDistinct.authorization ?? []).map((value) => same(value, `Bearer ${credentials}`)),
    ...(headersDistinct['x-a2a-notification-token'] ?? []).map((value) => same(value, token)),
  ];
  return matches.length > 0 && matches.every(Boolean);
}

function same(received: string, wanted: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(received), digest(wanted));
}

/** The task of a notification: 1.0 wraps the event, 0.3 does not. */
function taskIn(bytes: Buffer): string | undefined {
  try {
    const said = JSON.parse(bytes.toString('utf8')) as JsonObject;
    const { task, statusUpdate, artifactUpdate, message } = said as Record<string, { id?: string; taskId?: string }>;
    const inner = statusUpdate ?? artifactUpdate ?? message;
    const id = task?.id ?? inner?.taskId ?? (said.kind === 'task' ? said.id : said.taskId);
    return typeof id === 'string' ? id : undefined;
  } catch {
    return undefined;
  }
}
