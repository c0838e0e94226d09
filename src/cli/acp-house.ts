/** The heavy half of `tollbridge acp`: the house, and the relay in it. Loaded while the agent starts. */
import type { Link } from '../../adapters/acp/relay/link.ts';
import { createRelay, type Relay } from '../../adapters/acp/relay/relay.ts';
import { createTurns } from '../../adapters/acp/relay/turns.ts';
import { createWires } from '../../adapters/acp/relay/wires.ts';
import { createSecrets } from '../auth/vaults.ts';
import { createIds } from '../core/clock.ts';
import { createRedactor } from '../core/redact.ts';
import type { Actor } from '../model/actions.ts';
import type { Bridge } from '../ports.ts';
import { superviseIn } from '../wire/supervision.ts';
import type { AcpOptions } from './acp.ts';
import { settingsFrom } from './acp-settings.ts';
import { commandName } from './command-name.ts';
import { configFrom, localActor, open } from './context.ts';
import { openHarnesses } from './harnesses.ts';
import { createLogger } from './logger.ts';

const KEEPER: Actor = { id: 'system:acp', kind: 'system', scopes: ['*'] };

export interface OpenRelay {
  readonly relay: Relay;
  close(): Promise<void>;
}

export async function openRelay(command: readonly string[], options: AcpOptions, link: Link): Promise<OpenRelay> {
  const config = await configFrom(options);
  const redactor = createRedactor();
  const secret = createSecrets({ vaults: config.vaults, env: process.env, learn: redactor.learn });
  const settings = await settingsFrom(config, options, secret);
  const log = createLogger(redactor);
  const ids = createIds();
  const name = options.name ?? commandName(command, 'agent');
  let bridge: Bridge | undefined;
  const turns = createTurns({ bridge: () => bridge as Bridge, name, ids, log, thoughts: settings.thoughts });
  const harnesses = await openHarnesses(config, undefined, { log, ids, redactor });
  const house = await open(config, {
    logger: log,
    redactor,
    ids,
    engines: harnesses.engines,
    backends: [turns.backend],
    settings: {
      graceMs: settings.cancelMs,
      keeper: false,
      ...(config.autonomy && { defaultTier: config.autonomy }),
      ...(config.askExpiresMs && { askExpiresMs: config.askExpiresMs }),
    },
  });
  bridge = house.bridge;
  await house.start();
  superviseIn(config.dataDir);
  harnesses.listen(bridge, KEEPER);
  const person = { ...localActor(), door: 'acp' };
  const wires = createWires(link.editor, link.agent);
  const relay = createRelay({ bridge, person, name, turns, wires, settings, log, ids });
  return {
    relay,
    async close() {
      await harnesses.close();
      await house.close();
    },
  };
}
