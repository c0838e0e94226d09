/** The heavy half of `tollbridge acp`: the runtime, and the relay on it. Loaded while the agent starts. */

import { acp as adapter } from '../../../../adapters/acp/index.ts';
import type { RelayLink } from '../../../../adapters/acp/relay/index.ts';
import type { OpenRelay } from '../../../ports/index.ts';
import type { Config } from '../../../runtime/config/config.ts';
import { openAt } from '../../../runtime/config/document.ts';
import { createRuntime, createSurroundings } from '../../../runtime/create-runtime.ts';
import { createLogger } from '../../../runtime/logger.ts';
import { superviseIn } from '../../../transport/process/supervision.ts';
import { commandName } from '../../command-name.ts';
import { configFrom, localActor, requireUsable } from '../../context.ts';
import type { AcpOptions } from './acp.ts';
import { sectionFrom } from './acp-settings.ts';

export interface AttachedRelay {
  readonly relay: OpenRelay;
  close(): Promise<void>;
}

export async function openRelay(
  command: readonly string[],
  options: AcpOptions,
  link: RelayLink,
): Promise<AttachedRelay> {
  const config = await configFrom(options);
  await requireUsable(config.dataDir);
  const section = sectionFrom(config, options);
  // Before anything is waited for: the agent runs already, and must not pass for a person until it has said its name.
  const opened: (() => unknown)[] = [superviseIn(config.dataDir)];
  const close = async () => {
    for (const end of opened) await end();
  };
  try {
    const name = options.name ?? nameOf(await link.agentName, command, config);
    const runtime = await createRuntime(config, {
      ...createSurroundings(createLogger),
      name: 'acp',
      mounts: 'harnesses',
      prepare: ({ deps }) => {
        const open = () => adapter.parts.relay.open(section, { ...deps, name });
        const relay = openAt(open, config.where, ['relays', 'acp']);
        return { relay, backends: [relay.backend], settings: { graceMs: relay.graceMs, recoversOrphans: false } };
      },
    });
    opened.unshift(() => runtime.close());
    await runtime.requireNames('acp');
    const person = { ...localActor(), door: 'acp' };
    return { relay: await runtime.prepared.relay.attach(runtime.bridge, person, link), close };
  } catch (cause) {
    await close();
    throw cause;
  }
}

/**
 * The agent's name for itself. The names of agents in the configuration are not for it to take: rules may be about them, and
 * then it is called after its command, as it is when it says nothing.
 */
function nameOf(said: string | undefined, command: readonly string[], { agents }: Config): string {
  const name = said === undefined ? undefined : commandName([said.toLowerCase().slice(0, 80)], 'agent');
  return name === undefined || Object.hasOwn(agents, name) ? commandName(command, 'agent') : name;
}
