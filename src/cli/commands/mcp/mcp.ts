/**
 * `tollbridge mcp -- <server command>`: an MCP server with the gate in front of it, for a client that starts its
 * servers itself. It shares the log with other processes on the same data directory, so its questions are answered at
 * the client, with `tollbridge approve`, or at any door of a running gateway. Nothing but the protocol goes to standard
 * output.
 */

import { mcp as adapter, type UpstreamConfig } from '../../../../adapters/mcp/index.ts';
import { Fault } from '../../../model/faults.ts';
import type { TSchema } from '../../../model/type.ts';
import { check } from '../../../model/validate.ts';
import { own } from '../../../model/values/own.ts';
import type { Config } from '../../../runtime/config/config.ts';
import { createRuntime, createSurroundings } from '../../../runtime/create-runtime.ts';
import { createLogger } from '../../../runtime/logger.ts';
import { exposedTools } from '../../../runtime/mounts/exposed-tools.ts';
import { exposedOf } from '../../../runtime/mounts/mounts.ts';
import { SESSION_VARIABLE } from '../../../transport/http/session-header.ts';
import { clientProcess, superviseIn } from '../../../transport/process/supervision.ts';
import { environmentInFront } from '../../child-environment.ts';
import { commandName } from '../../command-name.ts';
import { type CommonOptions, configFrom, localActor, localAgent, requireUsable } from '../../context.ts';
import { requireProgram } from '../../programs.ts';
import { untilInputEnds } from '../../stop-signals.ts';
import { addressedUpstream, withHeaderVault } from './addressed.ts';

export interface McpOptions extends CommonOptions {
  readonly name?: string;
  readonly url?: string;
  readonly server?: string;
  readonly transport?: string;
  /** Headers and the variables that hold their values: `Authorization=VARIABLE`. */
  readonly headerEnv?: readonly string[];
}

export async function mcp(command: readonly string[], options: McpOptions): Promise<void> {
  const config = withHeaderVault(await configFrom(options));
  const { name, upstream } = upstreamFor(config, command, options);
  if (upstream.command) await requireProgram(upstream.command, upstream.cwd);
  await requireUsable(config.dataDir);
  const runtime = await createRuntime(config, {
    ...createSurroundings(createLogger),
    name: 'mcp',
    mounts: 'harnesses',
    // Orphaned agent work is left to other processes; calls interrupted in a killed process are ended by the next one
    // that starts.
    settings: { recoversOrphans: false },
    prepare: ({ deps }) => ({
      tools: [exposedTools(adapter.parts.tools.open(upstream, { ...deps, name }), exposedOf(config).get(name))],
    }),
  });
  const { bridge, prepared, deps } = runtime;
  const door = adapter.parts.door.open(await runtime.section('mcp'), { ...deps, name: 'mcp' });
  // The client that started this command is the agent whose calls are decided here.
  const endSupervision = superviseIn(config.dataDir, { parentIsAgent: true });
  try {
    const session = process.env[SESSION_VARIABLE];
    // Started by an agent that works in a session of ours: no person is at this client, and its questions are shown in
    // that session. Otherwise an answer given at the client counts as the owner's.
    const person = session ? {} : { person: { ...localActor(), door: 'mcp' } };
    const streams = { input: process.stdin, output: process.stdout };
    const conversation = clientProcess();
    const client = { ...streams, actor: localAgent('mcp'), ...person, session, conversation, server: name };
    await untilInputEnds(process.stdin, async (signal) => await door.serve?.(bridge, { ...client, signal }));
  } finally {
    await Promise.all(prepared.tools.map((tools) => tools.close?.()));
    await runtime.close();
    endSupervision();
  }
}

/** The command as given, an address, or a server of the configuration. */
function upstreamFor(config: Config, command: readonly string[], options: McpOptions) {
  const { name, url, server } = options;
  const sources = [command.length > 0, url !== undefined, server !== undefined].filter(Boolean).length;
  if (sources !== 1) {
    throw new Fault('invalid_request', 'say which server: a command after --, or --url <address>, or --server <name>');
  }
  if (server !== undefined) {
    const section = own(config.tools, server)?.mcp;
    if (!section) throw new Fault('not_found', `the configuration has no tools.${server}.mcp`);
    return {
      name: server,
      upstream: check(adapter.parts.tools.configSchema as TSchema, section, `tools.${server}.mcp`) as UpstreamConfig,
    };
  }
  const upstream: UpstreamConfig =
    url === undefined
      ? { command: [...command], env: environmentInFront(config.vaults) }
      : addressedUpstream(url, options, process.env);
  return { name: name ?? commandName(url === undefined ? command : [new URL(url).hostname], 'server'), upstream };
}
