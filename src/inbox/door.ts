/**
 * Where decision links lead. Looking shows the question and decides nothing, so that a mail scanner or a preview cannot
 * answer; only a form sent from the page does, once. A link that is not ours, not for anyone any more, or of a question
 * that is gone gets the same page.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Actor } from '../model/actions.ts';
import type { AskRecord } from '../model/asks.ts';
import { asFault } from '../model/faults.ts';
import type { Bridge, Closable, Deps, FrontDoor, Row } from '../ports.ts';
import { readBytes } from '../wire/body.ts';
import type { Links } from './links.ts';
import { answerPage, questionPage } from './page.ts';

export const LINK_PATH = '/decide';

export interface LinkDoorDeps extends Pick<Deps, 'http' | 'log'> {
  readonly links: Links;
  /** Who is sent links; a link for anyone else has been taken back. */
  readonly recipients: readonly string[];
}

type Ask = AskRecord & Row;

export function linkDoor({ http, log, links, recipients }: LinkDoorDeps): FrontDoor {
  return {
    name: 'link',
    carries: ['approval', 'input'],
    async open(bridge: Bridge): Promise<Closable> {
      http.mount(LINK_PATH, (request, response, next) => {
        answer(bridge, request, response).catch((thrown) => {
          log.error({ err: thrown }, 'a decision link could not be served');
          next(thrown);
        });
      });
      return { close: async () => {} };
    },
  };

  async function answer(bridge: Bridge, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const link = links.read((request.url ?? '').replace(/[?#].*$/, '').replace(/^\//, ''));
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
      send(response, 200, questionPage(ask));
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

/** Whoever holds a link may look at questions and answer; the log says which link it was. */
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
  if (state === 'expired') return 'Nobody answered in time, which counts as no.';
  if (state === 'canceled') return 'The work it was about has ended.';
  return `Answered by ${answered_by ?? 'someone'}${answered_at ? ` at ${answered_at}` : ''}.`;
}

function send(response: ServerResponse, status: number, html: string, allow?: string): void {
  response.writeHead(status, {
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'x-robots-tag': 'noindex',
    'x-content-type-options': 'nosniff',
    'content-security-policy':
      "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'",
    ...(allow && { allow }),
  });
  response.end(html);
}
