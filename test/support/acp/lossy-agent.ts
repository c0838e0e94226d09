/** An ACP agent in a configuration, and work of it that loses two things on its way: what a call changed, and what the work cost. */
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';

const AGENT = fileURLToPath(new URL('./agent.mjs', import.meta.url));

export const LOSSY_CONFIG = `agents: { worker: { acp: { command: ${JSON.stringify([process.execPath, AGENT])}, cwd: ${JSON.stringify(tmpdir())} } } }
rules: [{ id: work, then: allow }]
`;

const call = { toolCallId: 'c1', title: 'deploy', kind: 'execute', rawInput: { command: 'make deploy' } };

/** It asks about a command, runs it by itself, and reports neither its effects nor tokens. */
export const LOSSY_WORK = JSON.stringify([
  {
    ask: 'session/request_permission',
    params: { toolCall: call, options: [{ optionId: 'once', name: 'Yes', kind: 'allow_once' }] },
    quiet: true,
  },
  { update: { sessionUpdate: 'tool_call', status: 'in_progress', ...call } },
  { update: { sessionUpdate: 'tool_call_update', toolCallId: 'c1', status: 'completed', rawOutput: 'deployed' } },
  { say: 'Done.' },
]);
