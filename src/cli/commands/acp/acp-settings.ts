/** Settings of this relay: its section in the configuration, overridden by the command line. */

import {
  type GatewayToolServer,
  PLAIN_SETTINGS,
  type RelayConfig,
  type RelaySettings,
  relaySchema,
} from '../../../../adapters/acp/relay/settings.ts';
import { THOUGHTS } from '../../../../adapters/acp/server/render-thoughts.ts';
import { asText } from '../../../model/as-text.ts';
import { Fault } from '../../../model/faults.ts';
import { own } from '../../../model/own.ts';
import { durationMs } from '../../../policy/rules/duration.ts';
import type { Config } from '../../../runtime/config/config.ts';
import { relaySection } from '../../../runtime/mounts.ts';
import { SESSION_HEADER, SESSION_VARIABLE } from '../../../transport/http/session-header.ts';
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
  for (const [at, server] of mcp.entries())
    requireUrlOrCommand(server, config.where(['relays', 'acp', 'mcp', asText(at)]));
  const grants = options.hideAlways === undefined ? lasting_grants : options.hideAlways ? 'hide' : 'honour';
  const terminal = oneOf('--blocked-terminal', options.blockedTerminal, ['exit126', 'error'] as const);
  const shown = oneOf('--thoughts', options.thoughts, THOUGHTS);
  const servers = options.mcp?.map((server) => serverOf(server, config)) ?? mcp;
  const stall = stallOf(options.stall) ?? timeouts.stall_ms ?? PLAIN_SETTINGS.stallMs;
  return {
    cwd: process.cwd(),
    standingGrants: grants ?? PLAIN_SETTINGS.standingGrants,
    blockedTerminal: terminal ?? blocked_terminal ?? PLAIN_SETTINGS.blockedTerminal,
    thoughts: shown ?? thoughts ?? PLAIN_SETTINGS.thoughts,
    ...(persona && { persona }),
    mcpServers: await Promise.all(servers.map((server) => toolServer(server, secret))),
    stallMs: stall === 0 ? undefined : stall,
    cancelMs: timeouts.cancel_ms ?? PLAIN_SETTINGS.cancelMs,
  };
}

function oneOf<W extends string>(flag: string, value: string | undefined, words: readonly W[]): W | undefined {
  const word = words.find((each) => each === value);
  if (value !== undefined && !word) throw new Fault('invalid_request', `${flag} is one of: ${words.join(', ')}`);
  return word;
}

function stallOf(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const ms = value === 'off' ? 0 : durationMs(value);
  if (ms === undefined) throw new Fault('invalid_request', `--stall ${value}: write 30s, 10m, 2h, or off`);
  return ms;
}

function requireUrlOrCommand({ url, command }: Server, position: string): void {
  if ((url === undefined) !== (command === undefined)) return;
  throw new Fault('invalid_request', `${position}: a server has a url or a command`);
}

/** An address is a running server, a name one of the configuration, and anything else a command that starts one. */
function serverOf(value: string, config: Config): Server {
  if (/^https?:\/\//.test(value)) return { name: 'tollbridge', url: value };
  if (own(config.tools, value)?.mcp) return { name: value, command: ownServer(value, config) };
  return { name: 'tollbridge', command: value.split(' ').filter(Boolean) };
}

/**
 * This program itself, for one server of the configuration: it shares our log, and needs neither a gateway nor a token.
 */
function ownServer(name: string, { file, dataDir }: Config): string[] {
  const again = [process.execPath, ...process.execArgv, process.argv[1] ?? '', 'mcp', '--server', name];
  return [...again, '--data', dataDir, ...(file ? ['--config', file] : [])];
}

async function toolServer({ name, url, command = [], token }: Server, secret: (name: string) => Promise<string>) {
  if (url === undefined) {
    const [program = '', ...args] = command;
    const toWire = (value: string) => ({ name, command: program, args, env: [{ name: SESSION_VARIABLE, value }] });
    return { http: false, toWire } satisfies GatewayToolServer;
  }
  const authorization = token ? [{ name: 'Authorization', value: `Bearer ${await secret(token)}` }] : [];
  return {
    http: true,
    toWire: (value) => ({ type: 'http', name, url, headers: [...authorization, { name: SESSION_HEADER, value }] }),
  } satisfies GatewayToolServer;
}
