/** Sends the public card: whole or not modified, in the revision the reader speaks, without authentication. */
import { PROTOCOL } from '../../../mappings/a2a.ts';
import { PROTOCOL as LEGACY } from '../../../mappings/a2a-0.3.ts';
import type { MadeCard } from './card.ts';
import type { PeerRequest } from './exchange.ts';

export interface CardReader {
  readonly version: string;
  /** Whether 0.3 is served at all; if not, every reader gets the 1.0 card. */
  readonly legacy: boolean;
  readonly openedAt: string;
}

const MAX_AGE = 300;

export function sendCard({ request, response }: PeerRequest, made: MadeCard, reader: CardReader): void {
  const older = reader.legacy && reader.version === LEGACY;
  const { text, etag } = older ? made.legacy : made.wire;
  response.setHeader('etag', etag);
  response.setHeader('cache-control', `public, max-age=${MAX_AGE}`);
  response.setHeader('last-modified', new Date(reader.openedAt).toUTCString());
  response.setHeader('vary', 'A2A-Version');
  response.setHeader('a2a-version', older ? LEGACY : PROTOCOL);
  const known = request.headers['if-none-match'];
  if (known?.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag || tag.trim() === '*')) {
    response.writeHead(304).end();
    return;
  }
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  response.end(text);
}
