/**
 * A response with the headers every response of this port carries, however its door writes it. They are added in
 * `writeHead`: set one by one beforehand, they would keep Node from writing the head at once.
 */
import { IncomingMessage, type OutgoingHttpHeader, type OutgoingHttpHeaders, ServerResponse } from 'node:http';

type Headers = OutgoingHttpHeaders | OutgoingHttpHeader[];

export class GatewayRequest extends IncomingMessage {
  id = '';
  /** Set for a request that another replica handed on: what that one saw of the caller. */
  hop: { readonly address?: string } | undefined = undefined;
}

export class GatewayResponse extends ServerResponse<GatewayRequest> {
  /** It is sent piece by piece, for as long as its reader stays. */
  streams = false;
  /** The connection is closed after this response. */
  last = false;
  /** `max-age` of the HSTS header in seconds; 0 sends none. */
  strictSeconds = 0;

  override writeHead(status: number, reason?: string | Headers, more?: Headers): this {
    const passed = typeof reason === 'string' ? more : (reason ?? more);
    this.streams = isStream(passed);
    const headers: OutgoingHttpHeader[] = ['x-request-id', this.req.id, ...COMMON_HEADERS];
    if (this.last) headers.push('connection', 'close');
    if (this.strictSeconds > 0) headers.push('strict-transport-security', `max-age=${this.strictSeconds}`);
    // Where a door has set headers of its own, or passes a list, Node merges them by its own rules.
    if (Array.isArray(passed) || this.getHeaderNames().length > 0) {
      for (let at = 0; at < headers.length; at += 2) {
        const name = headers[at] as string;
        if (!this.hasHeader(name)) this.setHeader(name, headers[at + 1] as string);
      }
      return typeof reason === 'string' ? super.writeHead(status, reason, more) : super.writeHead(status, passed);
    }
    // One list: Node writes it as it is, and merging objects costs as much as writing them.
    for (const name in passed) {
      const value = passed[name];
      if (value !== undefined && !(this.last && name === 'connection')) headers.push(name, value as OutgoingHttpHeader);
    }
    return typeof reason === 'string' ? super.writeHead(status, reason, headers) : super.writeHead(status, headers);
  }
}

function isStream(headers: Headers | undefined): boolean {
  if (headers === undefined) return false;
  if (!Array.isArray(headers)) return String(headers['content-type'] ?? '').startsWith(STREAM);
  return headers.some((each, at) => at % 2 === 1 && String(each).startsWith(STREAM));
}
const STREAM = 'text/event-stream';

const COMMON_HEADERS = ['x-content-type-options', 'nosniff', 'referrer-policy', 'no-referrer'];
