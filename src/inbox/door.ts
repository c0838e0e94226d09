/**
 * The door behind decision links. GET shows the question and decides nothing, so that a mail scanner or a preview
 * cannot answer; only the page's form does, once. A forged link, a revoked one and one to a deleted question get the
 * same page.
 */
import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Actor } from '../model/actions.ts';
import type { AskRecord, PendingAct } from '../model/asks.ts';
import { asFault } from '../model/faults.ts';
import type { Bridge, Closable, Deps, FrontDoor, HttpHandler, Row } from '../ports/index.ts';
import { readBytes } from '../transport/http/body.ts';
import type { Links } from './links.ts';
import { answerPage, questionPage } from './page.ts';
import { viewQuestion } from './question-view.ts';

export const LINK_PATH = '/decide';

export interface LinkDoorDeps extends Pick<Deps, 'http' | 'log' | 'clock'> {
  readonly links: Links;
  /** Recipients of links; a link of any other recipient is revoked. */
  readonly recipients: readonly string[];
}

type Ask = AskRecord & Row;

export function linkDoor({ http, log, links, recipients, clock }: LinkDoorDeps): FrontDoor {
  return {
    name: 'link',
    carries: ['approval', 'input'],
    async open(bridge: Bridge): Promise<Closable> {
      const handler: HttpHandler = (request, response, next) => {
        answer(bridge, request, response).catch((thrown) => {
          log.error({ err: thrown }, 'a decision link could not be served');
          next(thrown);
        });
      };
      http.claim('link', [{ path: `${LINK_PATH}/*`, handler }]);
      return { close: async () => {} };
    },
  };

  async function answer(bridge: Bridge, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, token = '', file] =
      /^\/?([^/?#]*)(\/act)?(?:[?#].*)?$/.exec((request.url ?? '').slice(LINK_PATH.length)) ?? [];
    const link = links.read(token);
    const actor = link && holderOf(link.recipient);
    const ask = link && (await bridge.view<Ask>(actor as Actor, 'ask', link.askId).catch(() => undefined));
    if (!ask || !link || !actor || !recipients.includes(link.recipient)) {
      send(
        response,
        404,
        answerPage('This link leads nowhere', 'It may be incomplete, or no longer be meant for you.'),
      );
      return;
    }
    if (ask.state !== 'open') {
      send(response, 409, answerPage(`Already ${ask.state}`, endOf(ask)));
      return;
    }
    if (request.method === 'GET' || request.method === 'HEAD') {
      const whole = await wholeAct(bridge, actor, ask);
      if (file && whole.act) sendAct(response, whole.act);
      else if (file) send(response, 404, answerPage('There is nothing to download', whole.trouble ?? ''));
      else send(response, 200, pageOf(ask, whole, token, clock.now()));
      return;
    }
    if (request.method !== 'POST') {
      send(response, 405, answerPage('That is not how to answer', 'Open the link and use its buttons.'), 'GET, POST');
      return;
    }
    const form = new URLSearchParams((await readBytes(request, 16 * 1024)).toString('utf8'));
    const said = answerIn(form, ask);
    if (!said) {
      send(response, 400, answerPage('That was no answer', 'Go back, and choose one of the buttons.'));
      return;
    }
    try {
      await bridge.submit({ kind: 'ask.answer', actor, body: { ask_id: ask.id, ...said } });
    } catch (thrown) {
      const fault = asFault(thrown);
      const status = fault.kind === 'conflict' ? 409 : fault.kind === 'permission_denied' ? 403 : 400;
      send(response, status, answerPage('Your answer was not taken', fault.message));
      return;
    }
    const word = said.approved === undefined ? 'Sent' : said.approved ? 'Approved' : 'Denied';
    send(response, 200, answerPage(word, 'Your answer is on record. You can close this page.'));
  }
}

interface Whole {
  readonly act?: PendingAct;
  readonly trouble?: string;
}

/** The act as it will run. A question for a value has no act. */
async function wholeAct(bridge: Bridge, actor: Actor, ask: Ask): Promise<Whole> {
  if (ask.kind === 'input') return {};
  try {
    return { act: await bridge.pendingAct(actor, ask.id) };
  } catch (thrown) {
    return { trouble: asFault(thrown).message };
  }
}

/** Longer than a phone displays without trouble. */
const LONGEST_ON_PAGE = 256 * 1024;

function pageOf(ask: Ask, { act, trouble }: Whole, token: string, now: string): string {
  const view = viewQuestion(ask, act, now);
  const bytes = act && fileOf(act);
  const long = bytes && bytes.length > LONGEST_ON_PAGE;
  return questionPage({
    view,
    kind: ask.kind,
    ...(trouble && { trouble }),
    ...(long && { download: { href: `${token}/act`, bytes: bytes.length, sha256: sha256(bytes) } }),
  });
}

function fileOf(act: PendingAct): Buffer {
  return Buffer.from(`${JSON.stringify(act, undefined, 2)}\n`);
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

function sendAct(response: ServerResponse, act: PendingAct): void {
  response.writeHead(200, {
    'content-type': 'application/json; charset=utf-8',
    'content-disposition': 'attachment; filename="act.json"',
    ...PRIVATE,
  });
  response.end(fileOf(act));
}

/** A link's holder may read questions and answer them; the log names the link. */
function holderOf(recipient: string): Actor {
  return {
    id: `link:${recipient}`,
    kind: 'person',
    scopes: ['approvals:write', 'tasks:read', 'others:read'],
    door: 'link',
    interactive: true,
  };
}

function answerIn(
  form: URLSearchParams,
  ask: Ask,
): { value?: string; approved?: boolean; reason?: string } | undefined {
  // Repeated fields are refused: which of them counts would depend on the reader.
  if (new Set(form.keys()).size !== form.size) return undefined;
  if (ask.kind === 'input') {
    const value = form.get('value');
    return value === null || value === '' ? undefined : { value };
  }
  const decision = form.get('decision');
  if (decision !== 'approve' && decision !== 'deny') return undefined;
  const reason = form.get('reason')?.trim().slice(0, 500);
  return { approved: decision === 'approve', ...(reason && { reason }) };
}

function endOf({ state, answered_by, answered_at }: Ask): string {
  if (state === 'expired') return 'Not answered in time: denied.';
  if (state === 'canceled') return 'The work it was about has ended.';
  return `Answered by ${answered_by ?? 'someone'}${answered_at ? ` at ${answered_at}` : ''}.`;
}

function send(response: ServerResponse, status: number, html: string, allow?: string): void {
  response.writeHead(status, {
    'content-type': 'text/html; charset=utf-8',
    ...PRIVATE,
    'content-security-policy':
      "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'",
    ...(allow && { allow }),
  });
  response.end(html);
}

/** A link is a secret, and its page is for its holder only. */
const PRIVATE = {
  'cache-control': 'no-store',
  // With `no-referrer` a browser sends `Origin: null` with the form, and the gateway would refuse the answer.
  'referrer-policy': 'same-origin',
  'x-robots-tag': 'noindex',
  'x-content-type-options': 'nosniff',
};
