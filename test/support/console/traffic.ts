/** The same request, raised once through each of the six protocols of a gateway: a mail to an address that names the protocol. */
import { speakTo } from '../acp/client.ts';
import { event } from '../ahp/gateway.ts';
import type { ConsoleGateway } from './console.ts';

export const PROTOCOLS = ['harn', 'runs', 'a2a', 'mcp', 'ahp', 'acp'] as const;

/** Some doors answer only when the question is: what they say is not waited for. */
export async function raiseOnAll(at: ConsoleGateway, text = 'hello'): Promise<void> {
  const { url, token } = at.gateway;
  const post = (path: string, body: object, more: Record<string, string> = {}) =>
    void fetch(`${url}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...more },
      body: JSON.stringify(body),
    }).then(read, () => {});

  await at.work(`read plan then send ${text} to harn@example.org`);
  post(
    '/v1/runs',
    { input: { text: `read plan then send ${text} to runs@example.org` }, metadata: {} },
    { authorization: `Bearer local:${token}`, 'idempotency-key': text },
  );
  const message = { messageId: text, role: 'ROLE_USER', parts: [{ text: `send ${text} to a2a@example.org` }] };
  const send = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } };
  post('/a2a/demo', send, { 'a2a-version': '1.0' });
  void callMail(at, { to: 'mcp@example.org', text }).then(read, () => {});
  const asked = event('pre_action', { tool: 'send_mail', arguments: { to: 'ahp@example.org', text } });
  post('/ahp', { jsonrpc: '2.0', id: 'x', method: 'ahp/event', params: asked });
  const editor = await speakTo(at.gateway);
  void editor.prompt(await editor.session('/repo'), `send ${text} to acp@example.org`).catch(() => {});
}

/** An answer that no one holds is given up with the memory it takes, and its question is taken back. */
const read = (answer: Response) => answer.text().catch(() => {});

/** As many questions are open. */
export async function waitingCount(at: ConsoleGateway): Promise<number> {
  return (await at.call('GET', '/v1/permission-requests?status=pending&limit=100')).body.data.length;
}

/** A call of the mail tool through the MCP door. */
function callMail({ gateway }: ConsoleGateway, args: object): Promise<Response> {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const params = { name: 'demo__send_mail', arguments: args, _meta };
  return fetch(`${gateway.url}/mcp`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${gateway.token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': 'demo__send_mail',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
  });
}

/** A mail with this text, which waits for a person. */
export function mailFrom(at: ConsoleGateway, text: string): void {
  void callMail(at, { to: 'everyone@example.org', text }).then(read, () => {});
}
