/**
 * An answer that carries what every answer of this port carries, however its door writes it. The headers are put in when
 * the head is written: set one by one beforehand, they would keep Node from writing a head in one go.
 */
import { IncomingMessage, type OutgoingHttpHeader, type OutgoingHttpHeaders, ServerResponse } from 'node:http';

type Headers = OutgoingHttpHeaders | OutgoingHttpHeader[];

export class HouseRequest extends IncomingMessage {
  id = '';
}

export class HouseResponse extends ServerResponse<HouseRequest> {
  /** The connection is not for another request. */
  last = false;

  override writeHead(status: number, reason?: string | Headers, more?: Headers): this {
    const given = typeof reason === 'string' ? more : (reason ?? more);
    const headers: OutgoingHttpHeader[] = ['x-request-id', this.req.id, ...HOUSE];
    if (this.last) headers.push('connection', 'close');
    // Where a door has set headers of its own, or hands over a list, Node joins them by its own rules.
    if (Array.isArray(given) || this.getHeaderNames().length > 0) {
      for (let at = 0; at < headers.length; at += 2) {
        const name = headers[at] as string;
        if (!this.hasHeader(name)) this.setHeader(name, headers[at + 1] as string);
      }
      return typeof reason === 'string' ? super.writeHead(status, reason, more) : super.writeHead(status, given);
    }
    // One list: Node writes it as it is, and joining objects costs as much as writing them.
    for (const name in given) {
      const value = given[name];
      if (value !== undefined && !(this.last && name === 'connection')) headers.push(name, value as OutgoingHttpHeader);
    }
    return typeof reason === 'string' ? super.writeHead(status, reason, headers) : super.writeHead(status, headers);
  }
}

const HOUSE = ['x-content-type-options', 'nosniff', 'referrer-policy', 'no-referrer'];
