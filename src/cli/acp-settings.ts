/** How this relay is to behave: what the configuration says of it, and what the command line says instead. */

import {
  type OfferedServer,
  PLAIN_SETTINGS,
  type RelayConfig,
  type RelaySettings,
  relaySchema,
} from '../../adapters/acp/relay/settings.ts';
import { THOUGHTS } from '../../adapters/acp/thoughts.ts';
import type { Config } from '../config.ts';
import { asText } from '../model/as-text.ts';
import { Fault } from '../model/faults.ts';
import { own } from '../model/own.ts';
import { relaySection } from '../mounts.ts';
import { durationMs } from '../policy/duration.ts';
import { SESSION_HEADER, SESSION_VARIABLE } from '../wire/session-home.ts';
import type { AcpOptions } from './acp.ts';

type Server = NonNullable<RelayConfig['mcp']>[number];

export async function settingsFrom(
  config: Config,
  options: AcpOptions,
  secret: (name: string) => Promise<string>,
): Promise<RelaySettings> {
  const {
    lasting_grants,
    blocked_terminal,
    thoughts,
    persona,
    mcp = [],
    timeouts = {},
  } = relaySection<RelayConfig>(config, 'acp', relaySchema);
  for (const [at, server] of mcp.entries()) requireOneWay(server, config.where(['relays', 'acp', 'mcp', asText(at)]));
  const grants = options.hideAlways === undefined ? lasting_grants : options.hideAlways ? 'hide' : 'honour';
  const terminal = oneOf('--blocked-terminal', options.blockedTerminal, ['exit126', 'error'] as const);
  const shown = oneOf('--thoughts', options.thoughts, THOUGHTS);
  const servers = options.mcp?.map((given) => serverOf(given, config)) ?? mcp;
  const stall = stallOf(options.stall) ?? timeouts.stall_ms ?? PLAIN_SETTINGS.stallMs;
  return {
    cwd: process.cwd(),
    standingGrants: grants ?? PLAIN_SETTINGS.standingGrants,
    blockedTerminal: terminal ?? blocked_terminal ?? PLAIN_SETTINGS.blockedTerminal,
    thoughts: shown ?? thoughts ?? PLAIN_SETTINGS.thoughts,
    ...(persona && { persona }),
    mcpServers: await Promise.all(servers.map((server) => offered(server, secret))),
    stallMs: stall === 0 ? undefined : stall,
    cancelMs: timeouts.cancel_ms ?? PLAIN_SETTINGS.cancelMs,
  };
}

function oneOf<W extends string>(flag: string, given: string | undefined, words: readonly W[]): W | undefined {
  const word = words.find((each) => each === given);
  if (given !== undefined && !word) throw new Fault('invalid_request', `${flag} is one of: ${words.join(', ')}`);
  return word;
}

function stallOf(given: string | undefined): number | undefined {
  if (given === undefined) return undefined;
  const ms = given === 'off' ? 0 : durationMs(given);
  if (ms === undefined) throw new Fault('invalid_request', `--stall ${given}: write 30s, 10m, 2h, or off`);
  return ms;
}

function requireOneWay({ url, command }: Server, place: string): void {
  if ((url === undefined) !== (command === undefined)) return;
  throw new Fault('invalid_request', `${place}: a server has a url or a command`);
}

/** An address is a server that is there, a name one that is configured here, and anything else a command that starts one. */
function serverOf(given: string, config: Config): Server {
  if (/^https?:\/\//.test(given)) return { name: 'tollbridge', url: given };
  if (own(config.tools, given)?.mcp) return { name: given, command: ownServer(given, config) };
  return { name: 'tollbridge', command: given.split(' ').filter(Boolean) };
}

/** This very program, for one server of the configuration: it shares our log, and needs neither a gateway nor a token. */
function ownServer(name: string, { file, dataDir }: Config): string[] {
  const again = [process.execPath, ...process.execArgv, process.argv[1] ?? '', 'mcp', '--server', name];
  return [...again, '--data', dataDir, ...(file ? ['--config', file] : [])];
}

async function offered({ name, url, command = [], token }: Server, secret: (name: string) => Promise<string>) {
  if (url === undefined) {
    const [program = '', ...args] = command;
    const toWire = (value: string) => ({ name, command: program, args, env: [{ name: SESSION_VARIABLE, value }] });
    return { http: false, toWire } satisfies OfferedServer;
  }
  const authorization = token ? [{ name: 'Authorization', value: `Bearer ${await secret(token)}` }] : [];
  return {
    http: true,
    toWire: (value) => ({ type: 'http', name, url, headers: [...authorization, { name: SESSION_HEADER, value }] }),
  } satisfies OfferedServer;
}
