/** A client of the legacy era that opens a session and leaves without ending it. */
import { Agent, request } from 'node:http';

/** A client with connections of its own, which it keeps until it leaves, or with those of this agent. */
export function aClient(
  url: string,
  headers: Readonly<Record<string, string>> = {},
  agent = new Agent({ keepAlive: true }),
) {
  let session: string | undefined;
  let count = 0;
  const post = (body: object) => send('POST', { jsonrpc: '2.0', ...body });
  const send = (method: string, body?: object) =>
    new Promise<string>((resolve, reject) => {
      const sentHeaders = {
        ...headers,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...(session && { 'mcp-session-id': session }),
      };
      const sent = request(url, { method, agent, headers: sentHeaders }, (response) => {
        session ??= response.headers['mcp-session-id'] as string | undefined;
        let text = '';
        response.setEncoding('utf8').on('data', (chunk) => {
          text += chunk;
        });
        response.on('end', () => resolve(text));
        response.on('error', reject);
      });
      sent.on('error', reject);
      sent.end(body && JSON.stringify(body));
    });
  return {
    ask: (method: string, params: object = {}) => post({ id: ++count, method, params }),
    async open() {
      const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } };
      await post({ id: 'i', method: 'initialize', params });
      await post({ method: 'notifications/initialized' });
    },
    end: () => send('DELETE'),
    leave: () => agent.destroy(),
  };
}
