/** What stands behind a gateway in the live matrix, and the processes it takes. */
import { join } from 'node:path';
import { eventually } from '../support/eventually.ts';
import { PROCESSES, startGateway } from './gateway.ts';
import { type Gateway, overAt } from './gateway-client.ts';

export const BACKENDS = ['demo', 'acp', 'a2a', 'harn', 'runs', 'mcp', 'ahp'] as const;
export type Backend = (typeof BACKENDS)[number];

export const BACKEND_TITLES: Readonly<Record<Backend, string>> = {
  demo: 'demo agent',
  acp: 'ACP agent',
  a2a: 'A2A peer',
  harn: 'remote Harness',
  runs: 'remote runs',
  mcp: 'MCP tools',
  ahp: 'behind an AHP harness',
};

export interface Setup {
  readonly backend: Backend;
  /** Where clients come in. */
  readonly near: Gateway;
  /** Where the work goes, or the decisions. */
  readonly far: Gateway | undefined;
  /** The agent's name at the near gateway. */
  readonly agent: string;
  /** The rules of a story, at the gateway that decides it. */
  rules(rules: readonly object[]): Promise<void>;
  /** The gateway in which the effects happen. */
  readonly hands: Gateway;
  stop(): Promise<void>;
}

const NODE = process.execPath;
const EFFECTS = {
  read_note: 'read',
  write_note: 'write',
  delete_note: 'delete',
  send_mail: 'send',
  slow_mail: 'send',
} as const;
/** Nobody near has a say but people: about mail, and about whether the far agent works at all. */
const PEOPLE_ONLY = [
  { id: 'all', then: 'allow' },
  { id: 'asked', when: { tool: ['send_mail', 'demo'] }, then: 'ask', expires: '24h' },
];
export const DOORS = {
  acp: { on_disconnect: 'continue' },
  runs: { unanswered: 'replan', stream: { linger_ms: 1 } },
  ahp: { honours: ['modify'], effects: EFFECTS, settle_ms: 0 },
};
const TIMEOUTS = { poll_ms: 100, silence_ms: 10_000, cancel_ms: 10_000 };

export function slowMail(journal: string): object {
  const command = [NODE, join(PROCESSES, 'notes-server.mjs'), journal, 'slow'];
  return { slow: { mcp: { command, trusted: true } } };
}

/** A gateway with the demo agent and the demo tools, and the mail that takes a minute. */
function demoGateway(dir: string, name: string, rules: readonly object[], more: object = {}, env = {}) {
  const config = { demo: true, doors: DOORS, tools: slowMail(join(dir, name, 'journal')), ...more };
  return startGateway({ name, dir, config, rules, env });
}

/** Ready once work has gone all the way: agents, servers and harnesses are started when they are first needed. */
export async function openBackend(backend: Backend, dir: string): Promise<Setup> {
  const setup = await startBackend(backend, dir);
  const { near } = setup;
  const [workspace] = await near.list('/v1/workspaces');
  const { id } = await near.post('/v1/sessions', { workspace_id: workspace.id });
  const input = { role: 'user', parts: [{ type: 'text', text: 'hello', visibility: 'public' }] };
  const first = async () => {
    const task = await near.post(`/v1/sessions/${id}/tasks`, { input }).catch(() => undefined);
    return task && (await overAt(near, task.id)) === 'COMPLETED';
  };
  await eventually(first, `${backend} to do its first work`, { timeoutMs: 60_000 });
  return setup;
}

async function startBackend(backend: Backend, dir: string): Promise<Setup> {
  switch (backend) {
    case 'demo': {
      const near = await demoGateway(dir, 'near', []);
      return setup(backend, near, undefined, 'demo');
    }
    case 'acp': {
      const command = [NODE, join(PROCESSES, 'acp-agent.mjs'), join(dir, 'near', 'journal')];
      const agents = { demo: { acp: { command, cwd: dir } } };
      const near = await startGateway({ name: 'near', dir, config: { agents, doors: DOORS }, rules: [] });
      return setup(backend, near, undefined, 'demo');
    }
    case 'mcp': {
      const command = [NODE, join(PROCESSES, 'notes-server.mjs'), join(dir, 'near', 'journal')];
      const config = {
        agents: { demo: { teller: {} }, second: { teller: {} } },
        tools: { notes: { mcp: { command, trusted: true, effects: EFFECTS } } },
        doors: DOORS,
      };
      const near = await startGateway({ name: 'near', dir, config, rules: [], withoutDemoTools: true });
      return setup(backend, near, undefined, 'demo');
    }
    case 'ahp': {
      // The harness waits two seconds for people of its own; then the question is put here.
      const harness = { ...DOORS.ahp, timeout_ms: 4000, unanswered: 'escalate', honours: ['modify', 'escalate'] };
      const far = await demoGateway(dir, 'far', [], { doors: { ...DOORS, ahp: harness } });
      const guard = { ahp: { url: `${far.url}/ahp`, token: 'far', timeout_ms: 10_000 } };
      const env = secretOf(far);
      const more = { harnesses: { guard }, approvals: { expire_after: '5s' } };
      const near = await demoGateway(dir, 'near', PEOPLE_ONLY.slice(0, 1), more, env);
      return { ...setup(backend, near, far, 'demo'), hands: near };
    }
    default: {
      const far = await demoGateway(dir, 'far', []);
      const at = { secret: backend === 'runs' ? 'far-pair' : 'far', timeouts: TIMEOUTS };
      const url = backend === 'a2a' ? `${far.url}/a2a/demo` : far.url;
      const agents = { far: { [backend]: { url, ...at } } };
      const config = { agents, doors: DOORS };
      const near = await startGateway({ name: 'near', dir, config, rules: PEOPLE_ONLY, env: secretOf(far) });
      return setup(backend, near, far, 'far');
    }
  }
}

function secretOf({ token, pair }: Gateway): Record<string, string> {
  return { TOLLBRIDGE_SECRET_far: token, 'TOLLBRIDGE_SECRET_far-pair': pair };
}

function setup(backend: Backend, near: Gateway, far: Gateway | undefined, agent: string): Setup {
  const decides = far ?? near;
  return {
    backend,
    near,
    far,
    agent,
    rules: (rules) => decides.rules(rules),
    hands: decides,
    async stop() {
      await near.stop();
      await far?.stop();
    },
  };
}
