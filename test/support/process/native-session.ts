/** The native API of a served gateway: a session to work in, as its client makes one. */
import { PROTOCOL_VERSION, type Serving } from './served.ts';

// biome-ignore lint/suspicious/noExplicitAny: answers are looked into freely
export type Body = any;

export const PROTOCOL_VERSION_HEADERS = { 'harn-agents-protocol-version': PROTOCOL_VERSION };

/** The id of a new session, opened by the holder of this key. */
export async function room(gateway: Serving, key = gateway.token): Promise<string> {
  const headers = { authorization: `Bearer ${key}` };
  const { json: list } = await gateway.send('/v1/workspaces', { headers });
  const [workspace] = (list as Body).data;
  const { json, text } = await gateway.send('/v1/sessions', {
    method: 'POST',
    headers,
    body: { workspace_id: workspace.id },
  });
  if (typeof json.id !== 'string') throw new Error(text);
  return json.id;
}
