/** Callers of a running gateway. They outlive it, and what breaks off was not answered. */
import { type CallLedger, toolOf } from './ledger.ts';
import { ahpEvent } from './over-stdio.ts';

export interface GatewayAddress {
  readonly url: string;
  readonly token: string;
}

/** Until asked to stop, or the gateway is gone. */
export async function mcpOverHttp(
  { url, token }: GatewayAddress,
  ledger: CallLedger,
  caller: string,
  { stop, worked }: { readonly stop: AbortSignal; worked(): void },
): Promise<void> {
  const headers: Record<string, string> = {
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  };
  const post = async (body: object) => {
    const response = await fetch(`${url}/mcp/box`, { method: 'POST', headers, body: JSON.stringify(body) });
    const session = response.headers.get('mcp-session-id');
    if (session) headers['mcp-session-id'] = session;
    const text = await response.text();
    const data = /^data: (.*)$/m.exec(text)?.[1] ?? text;
    return data ? (JSON.parse(data) as { result?: { isError?: boolean } }) : {};
  };
  const greeting = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'c', version: '1' } };
  try {
    await post({ jsonrpc: '2.0', id: 0, method: 'initialize', params: greeting });
    await post({ jsonrpc: '2.0', method: 'notifications/initialized' });
    for (let count = 1; !stop.aborted; count += 1) {
      const name = toolOf(count);
      const call = ledger.want('mcp over http', `${caller}-${count}.`, name);
      const params = { name, arguments: { text: call.nonce } };
      const { result } = await post({ jsonrpc: '2.0', id: count, method: 'tools/call', params });
      if (result) call.received = result.isError ? 'refused' : 'succeeded';
      if (count > 3) worked();
    }
  } catch {
    // Gone: what was not answered is not known.
  }
}

export async function ahpOverHttp(
  { url, token }: GatewayAddress,
  ledger: CallLedger,
  name: string,
  { stop, worked }: { readonly stop: AbortSignal; worked(): void },
): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const post = async (body: object) => {
    const response = await fetch(`${url}/ahp`, { method: 'POST', headers, body: JSON.stringify(body) });
    const text = await response.text();
    return text ? (JSON.parse(text) as { result?: { decision?: string } }) : {};
  };
  try {
    for (let count = 1; !stop.aborted; count += 1) {
      const call = ledger.want('ahp over http', `${name}-${count}.`);
      const act = { tool_name: count % 7 === 1 ? 'forbidden' : 'note', arguments: { text: call.nonce } };
      const params = ahpEvent(name, 'pre_action', act);
      const { result } = await post({ jsonrpc: '2.0', id: `r${count}`, method: 'ahp/event', params });
      if (!result) continue;
      call.received = result.decision === 'allow' ? 'may run' : 'refused';
      if (count > 1) worked();
      const came = { success: result.decision === 'allow', output: 'x' };
      const reported = ahpEvent(name, 'post_action', { ...act, result: came });
      await post({ jsonrpc: '2.0', method: 'ahp/event', params: reported });
    }
  } catch {
    // Gone, as above.
  }
}
