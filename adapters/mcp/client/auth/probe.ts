/** The server's response to an unauthenticated request, or to one with these credentials: its challenge says where to sign in. */
import { Fault } from '../../../../src/index.ts';

export interface Probed {
  readonly status: number;
  readonly challenge: string | undefined;
}

export async function probe(
  url: URL,
  signal: AbortSignal,
  credentials: Readonly<Record<string, string>> = {},
): Promise<Probed> {
  const accept = 'application/json, text/event-stream';
  const headers = { ...credentials, accept, 'content-type': 'application/json', 'mcp-protocol-version': '2025-11-25' };
  const clientInfo = { name: 'tollbridge', version: '0' };
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params });
  const answer = await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal }).catch((cause) => {
    if (signal.aborted) throw signal.reason;
    throw new Fault('upstream_unavailable', `${url.host} cannot be reached`, { cause });
  });
  await answer.body?.cancel();
  return { status: answer.status, challenge: answer.headers.get('www-authenticate') ?? undefined };
}
