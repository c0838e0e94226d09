/** The heavy half of `tollbridge acp`: the house, and the relay in it. Loaded while the agent starts. */
import type { Link } from '../../adapters/acp/relay/link.ts';
import { createRelay, type Relay } from '../../adapters/acp/relay/relay.ts';
import { PLAIN_SETTINGS, type RelaySettings } from '../../adapters/acp/relay/settings.ts';
import { createTurns } from '../../adapters/acp/relay/turns.ts';
import { createWires } from '../../adapters/acp/relay/wires.ts';
import { createIds } from '../core/clock.ts';
import { createRedactor } from '../core/redact.ts';
import { Fault } from '../model/faults.ts';
import type { JsonObject } from '../model/schema.ts';
import type { Bridge } from '../ports.ts';
import type { AcpOptions } from './acp.ts';
import { commandName } from './command-name.ts';
import { configFrom, localActor, open } from './context.ts';
import { createLogger } from './logger.ts';

export interface OpenRelay {
  readonly relay: Relay;
  close(): Promise<void>;
}

export async function openRelay(command: readonly string[], options: AcpOptions, link: Link): Promise<OpenRelay> {
  const settings = settingsOf(options);
  const config = await configFrom(options);
  const redactor = createRedactor();
  const log = createLogger(redactor);
  const ids = createIds();
  const name = options.name ?? commandName(command, 'agent');
  let bridge: Bridge | undefined;
  const turns = createTurns({ bridge: () => bridge as Bridge, name, ids, log, thoughts: 'drop' });
  const house = await open(config, {
    logger: log,
    redactor,
    ids,
    backends: [turns.backend],
    settings: {
      graceMs: STOP_MS,
      keeper: false,
      ...(config.autonomy && { defaultTier: config.autonomy }),
      ...(config.askExpiresMs && { askExpiresMs: config.askExpiresMs }),
    },
  });
  bridge = house.bridge;
  await house.start();
  const person = { ...localActor(), door: 'acp' };
  const wires = createWires(link.editor, link.agent);
  const relay = createRelay({ bridge, person, name, turns, wires, settings, log, ids });
  return { relay, close: () => house.close() };
}

/** How long an agent that was told to stop may take to say so. */
const STOP_MS = 10_000;

function settingsOf({ hideAlways, blockedTerminal, mcp = [] }: AcpOptions): RelaySettings {
  if (blockedTerminal !== undefined && blockedTerminal !== 'exit126' && blockedTerminal !== 'error') {
    throw new Fault('invalid_request', '--blocked-terminal is exit126 or error');
  }
  return {
    ...PLAIN_SETTINGS,
    cwd: process.cwd(),
    standingGrants: hideAlways ? 'hide' : 'honour',
    ...(blockedTerminal && { blockedTerminal }),
    mcpServers: mcp.map(toServer),
  };
}

/** An address is a server that is there; anything else is a command that starts one. */
function toServer(given: string): JsonObject {
  if (/^https?:\/\//.test(given)) return { type: 'http', name: 'tollbridge', url: given, headers: [] };
  const [command = '', ...args] = given.split(' ').filter(Boolean);
  return { name: 'tollbridge', command, args, env: [] };
}
