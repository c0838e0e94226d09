/**
 * `tollbridge a2a -- <command…>`: serves an ACP agent as an A2A agent. A gateway like any other, with every door of the
 * configuration; the agent it was started with is the default one.
 */

import { Fault } from '../../../model/faults.ts';
import type { Config } from '../../../runtime/config/config.ts';
import { superviseIn } from '../../../transport/process/supervision.ts';
import { environmentInFront } from '../../child-environment.ts';
import { commandName } from '../../command-name.ts';
import { type CommonOptions, configFrom, requireUsable } from '../../context.ts';
import { calledAgain } from '../../own-name.ts';
import { portOf } from '../../port.ts';
import { requireProgram } from '../../programs.ts';
import { stopRequested } from '../../stop-signals.ts';
import { refuseExpiredKeys } from '../start/expired-keys.ts';

export interface A2aOptions extends CommonOptions {
  readonly host?: string;
  readonly port?: string;
  /** The agent's name in rules, cards and the log. */
  readonly name?: string;
}

export async function a2a(command: readonly string[], options: A2aOptions): Promise<void> {
  const name = options.name ?? agentName(command);
  if (!/^[a-z][a-z0-9_-]*$/.test(name)) {
    throw new Fault('invalid_request', `${name} cannot be the name of an agent: small letters, digits, _ and - only`);
  }
  const file = await configFrom(options, {
    ...(options.host && { host: options.host }),
    ...(options.port && { port: portOf(options.port) }),
  });
  const config = withAgent(file, name, command, process.cwd());
  await requireProgram(command);
  await requireUsable(config.dataDir);
  await refuseExpiredKeys(config);
  const endSupervision = superviseIn(config.dataDir);
  const stop = stopRequested();
  const { startGateway } = await import('../../../runtime/gateway.ts');
  const gateway = await startGateway(config, { recoversOrphans: false }).catch((cause) => {
    stop.letGo();
    endSupervision();
    throw cause;
  });
  const credentials = gateway.token ? `token ${gateway.token}` : 'API keys and OAuth2 tokens only';
  const { url } = gateway.deps.http;
  process.stdout.write(
    [
      `${name} is an A2A agent at ${url}/a2a/${name}  (${credentials})`,
      `Agent card: ${url}/.well-known/agent-card.json  Log: ${config.dataDir}`,
      `Approvals: ${calledAgain(options)} approvals`,
      '',
    ].join('\n'),
  );
  await stop.requested;
  process.stdout.write('\nstopping: running work is ended, approvals stay pending\n');
  await gateway.close();
  endSupervision();
}

function agentName(command: readonly string[]): string {
  const name = commandName(command, 'agent').toLowerCase().replaceAll('.', '-');
  return /^[a-z]/.test(name) ? name : `agent-${name}`;
}

/** The configuration with one more agent, which becomes the default, now and whenever the file is read again. */
export function withAgent(config: Config, name: string, command: readonly string[], cwd: string): Config {
  // The agent is wrapped by this command only, so it gets the environment it would have had without us.
  const inherit = Object.keys(environmentInFront(config.vaults));
  return {
    ...config,
    agents: { ...config.agents, [name]: { acp: { command: [...command], cwd, inherit } } },
    defaultAgent: name,
    demo: false,
    again: async () => withAgent(await config.again(), name, command, cwd),
  };
}
