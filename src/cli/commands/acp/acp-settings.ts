/** The relay's section of the configuration, with the flags of the command line put into it. */
import { acp as adapter, type RelayConfig, THOUGHTS } from '../../../../adapters/acp/index.ts';
import { Fault } from '../../../model/faults.ts';
import { own } from '../../../model/own.ts';
import { durationMs } from '../../../policy/rules/duration.ts';
import type { Config } from '../../../runtime/config/config.ts';
import { relaySection } from '../../../runtime/mounts.ts';
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
    ...(thoughts && { thoughts }),
    ...(options.mcp && { mcp: options.mcp.map((given) => serverOf(given, config)) }),
    ...(stall !== undefined && { timeouts: { ...section.timeouts, stall_ms: stall } }),
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

/** An address is a running server, a name one of the configuration, and anything else a command that starts one. */
function serverOf(given: string, config: Config): Server {
  if (/^https?:\/\//.test(given)) return { name: 'tollbridge', url: given };
  if (own(config.tools, given)?.mcp) return { name: given, command: ownServer(given, config) };
  return { name: 'tollbridge', command: given.split(' ').filter(Boolean) };
}

/**
 * This program itself, for one server of the configuration: it shares our log, and needs neither a gateway nor a token.
 */
function ownServer(name: string, { file, dataDir }: Config): string[] {
  const again = [process.execPath, ...process.execArgv, process.argv[1] ?? '', 'mcp', '--server', name];
  return [...again, '--data', dataDir, ...(file ? ['--config', file] : [])];
}
