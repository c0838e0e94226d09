/** What to paste into a client for each door. Pure. */

export interface ClientConfig {
  readonly title: string;
  readonly text: string;
}

interface DoorGuide {
  readonly about: string;
  readonly address: string;
  readonly configs: readonly ClientConfig[];
}

const TOKEN = '<TOKEN>';

export function clientConfigs(door: string, origin: string, agent: string): DoorGuide {
  const ws = origin.replace(/^http/, 'ws');
  const json = (value: unknown) => JSON.stringify(value, undefined, 2);
  switch (door) {
    case 'harn':
      return {
        about: 'Agents Protocol: REST, event streams, WebSocket',
        address: `${origin}/v1`,
        configs: [
          {
            title: 'curl',
            text: `curl ${origin}/v1/tasks -H "Authorization: Bearer ${TOKEN}" -H "Harn-Agents-Protocol-Version: agents-protocol-2026-04-25"`,
          },
        ],
      };
    case 'mcp':
      return {
        about: 'MCP clients: every mounted tool behind the rules',
        address: `${origin}/mcp`,
        configs: [
          {
            title: 'MCP client (mcp.json)',
            text: json({
              mcpServers: {
                tollbridge: { type: 'http', url: `${origin}/mcp`, headers: { Authorization: `Bearer ${TOKEN}` } },
              },
            }),
          },
        ],
      };
    case 'a2a':
      return {
        about: 'A2A peers: each agent here as a remote agent',
        address: `${origin}/a2a/${agent}`,
        configs: [
          { title: 'Agent card', text: `${origin}/a2a/${agent}/.well-known/agent-card.json` },
          {
            title: 'curl',
            text: curl(`${origin}/a2a/${agent}`, ['A2A-Version: 1.0'], {
              jsonrpc: '2.0',
              id: 1,
              method: 'SendMessage',
              params: { message: { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'hello' }] } },
            }),
          },
          {
            title: 'Another Tollbridge (tollbridge.yaml)',
            text: `agents:\n  ${agent}: { a2a: { url: "${origin}/a2a/${agent}", secret: NAME_OF_THE_SECRET } }`,
          },
        ],
      };
    case 'acp':
      return {
        about: 'Editors that speak ACP',
        address: `${ws}/acp`,
        configs: [
          {
            title: "Editor on this machine (agent_servers in its settings; the agent's own command stands behind --)",
            text: json({ agent_servers: { tollbridge: { command: 'tollbridge', args: ['acp', '--', 'YOUR_AGENT'] } } }),
          },
          { title: 'Editor elsewhere: this address, with the header', text: `Authorization: Bearer ${TOKEN}` },
        ],
      };
    case 'ahp':
      return {
        about: 'Agents that ask before they act (AHP)',
        address: `${origin}/ahp`,
        configs: [
          {
            title: 'What the agent asks, as curl',
            text: curl(`${origin}/ahp`, [], {
              jsonrpc: '2.0',
              id: '1',
              method: 'ahp/event',
              params: {
                event_type: 'pre_action',
                session_id: 's1',
                agent_id: 'my-agent',
                timestamp: '2026-11-01T09:00:00Z',
                depth: 0,
                payload: { action_type: 'tool_call', tool_name: 'read_file', arguments: { path: 'plan.md' } },
              },
            }),
          },
          { title: 'An agent that starts its harness itself', text: 'tollbridge ahp --stdio' },
        ],
      };
    case 'runs':
      return {
        about: 'Services that start runs (Agent Harness)',
        address: `${origin}/v1/runs`,
        configs: [
          {
            title: 'curl with the printed token; a key tbk_ID_SECRET is sent as Bearer tbk_ID:SECRET',
            text: curl(
              `${origin}/v1/runs`,
              ['Idempotency-Key: my-first-run'],
              { input: { text: 'hello' }, metadata: {} },
              `local:${TOKEN}`,
            ),
          },
        ],
      };
    default:
      return { about: '', address: origin, configs: [] };
  }
}

/** One line for a shell: none of the bodies here has a quote of its own. */
function curl(url: string, headers: readonly string[], body: object, token = TOKEN): string {
  const sent = [`Authorization: Bearer ${token}`, 'Content-Type: application/json', ...headers];
  return `curl ${url} ${sent.map((header) => `-H '${header}'`).join(' ')} -d '${JSON.stringify(body)}'`;
}
