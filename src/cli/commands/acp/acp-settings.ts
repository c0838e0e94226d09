/** The relay's section of the configuration, with the flags of the command line put into it. */
import { acp as adapter, type RelayConfig, THOUGHTS } from '../../../../adapters/acp/index.ts';
import { Fault } from '../../../model/faults.ts';
import { durationMs } from '../../../model/values/duration.ts';
import { own } from '../../../model/values/own.ts';
import type { Config } from '../../../runtime/config/config.ts';
import { relaySection } from '../../../runtime/mounts/mounts.ts';
import type { AcpOptions } from './acp.ts';

type Server = NonNullable<RelayConfig['mcp']>[number];

export function sectionFrom(config: Config, options: AcpOptions): RelayConfig {
  const section = relaySection(config, 'acp', adapter.parts.relay);
  const terminal = oneOf('--blocked-terminal', options.blockedTerminal, ['exit126', 'error'] as const);
  const thoughts = oneOf('--thoughts', options.thoughts, THOUGHTS);
  const stall = stallOf(options.stall);
  return {
    ...section,
    ...(options.hideAlways !== undefined && { lasting_grants: options.hideAlways ? 'hide' : 'honour' }),
    ...(terminal && { blocked_terminal: terminal }),
    ...(options.additions !== undefined && { additions: options.additions ? 'on' : 'off' }),
    ...(thoughts && { thoughts }),
    ...(options.mcp && { mcp: options.mcp.map((server) => serverOf(server, config)) }),
    ...(stall !== undefined && { timeouts: { ...section.timeouts, stall_ms: stall } }),
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
