/** The heavy half of `tollbridge acp`: the runtime, and the relay on it. Loaded while the agent starts. */

import { createWires } from '../../../../adapters/acp/relay/frames/pending.ts';
import { createTurns } from '../../../../adapters/acp/relay/from-editor/turns.ts';
import type { Link } from '../../../../adapters/acp/relay/link.ts';
import { createRelay, type Relay } from '../../../../adapters/acp/relay/relay.ts';
import { createSecrets } from '../../../auth/vaults.ts';
import { createRuntime, createSurroundings } from '../../../runtime/create-runtime.ts';
import { createLogger } from '../../../runtime/logger.ts';
import { superviseIn } from '../../../transport/process/supervision.ts';
import { commandName } from '../../command-name.ts';
import { configFrom, localActor, requireUsable } from '../../context.ts';
import type { AcpOptions } from './acp.ts';
import { settingsFrom } from './acp-settings.ts';

export interface OpenRelay {
  readonly relay: Relay;
  close(): Promise<void>;
}

export async function openRelay(command: readonly string[], options: AcpOptions, link: Link): Promise<OpenRelay> {
  const config = await configFrom(options);
  await requireUsable(config.dataDir);
  const surroundings = createSurroundings(createLogger);
  const { redactor, logger: log, ids } = surroundings;
  const secret = createSecrets({ vaults: config.vaults, env: process.env, learn: redactor.learn });
  const settings = await settingsFrom(config, options, secret);
  const name = options.name ?? commandName(command, 'agent');
  const runtime = await createRuntime(config, {
    ...surroundings,
    name: 'acp',
    mounts: 'harnesses',
    settings: { graceMs: settings.cancelMs, recoversOrphans: false },
    prepare: (services) => {
      const turns = createTurns({ bridge: services.bridge, name, ids, log, thoughts: settings.thoughts });
      return { turns, backends: [turns.backend] };
    },
  });
  const endSupervision = superviseIn(config.dataDir);
  const { bridge, prepared } = runtime;
  const close = async () => {
    await runtime.close();
    endSupervision();
  };
  await runtime.requireNames('acp').catch(async (cause) => {
    await close();
    throw cause;
  });
  const person = { ...localActor(), door: 'acp' };
  const wires = createWires(link.editor, link.agent);
  const relay = createRelay({ bridge, person, name, turns: prepared.turns, wires, settings, log, ids });
  return { relay, close };
}
