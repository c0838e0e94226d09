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
    const house = {
      'x-request-id': this.req.id,
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      ...(this.last && { connection: 'close' }),
    };
    // Where a door has set headers of its own, or hands over a list, Node joins them by its own rules.
    if (Array.isArray(given) || this.getHeaderNames().length > 0) {
      for (const [name, value] of Object.entries(house)) if (!this.hasHeader(name)) this.setHeader(name, value);
      return typeof reason === 'string' ? super.writeHead(status, reason, more) : super.writeHead(status, given);
    }
    const headers = { ...house, ...given };
    return typeof reason === 'string' ? super.writeHead(status, reason, headers) : super.writeHead(status, headers);
  }
}
