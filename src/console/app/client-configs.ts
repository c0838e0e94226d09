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
            title: 'Editor on this machine (agent_servers)',
            text: json({ agent_servers: { tollbridge: { command: 'tollbridge', args: ['acp'] } } }),
          },
          { title: 'Remote', text: `${ws}/acp` },
        ],
      };
    case 'ahp':
      return {
        about: 'Agents that ask before they act (AHP)',
        address: `${origin}/ahp`,
        configs: [{ title: 'AHP agent', text: json({ harness: { url: `${origin}/ahp`, token: TOKEN } }) }],
      };
    case 'runs':
      return {
        about: 'Runs API',
        address: `${origin}/v1/runs`,
        configs: [
          {
            title: 'curl',
            text: `curl ${origin}/v1/runs -H "Authorization: Bearer ${TOKEN}" -H "content-type: application/json" -d '{"input":"hello"}'`,
          },
        ],
      };
    default:
      return { about: '', address: origin, configs: [] };
  }
}
