/**
 * `tollbridge mcp -- <server command>`: a server of tools with the gate in front of it, for a client that starts its servers
 * itself. It shares the log with whatever else runs in the same data directory, so its questions are answered at the client,
 * with `tollbridge approve`, or at any door of a running gateway. Nothing but the protocol goes to standard output.
 */

import { createUpstream } from '../../adapters/mcp/client.ts';
import { settingsOf, type UpstreamConfig, upstreamSchema } from '../../adapters/mcp/config.ts';
import { createDesk } from '../../adapters/mcp/desk.ts';
import { serveStdio } from '../../adapters/mcp/north-stdio.ts';
import { createStints } from '../../adapters/mcp/stints.ts';
import type { House } from '../compose.ts';
import type { Config } from '../config.ts';
import type { Actor } from '../model/actions.ts';
import { Fault } from '../model/faults.ts';
import { own } from '../model/own.ts';
import type { Skill } from '../model/resources.ts';
import type { JsonObject } from '../model/schema.ts';
import { check } from '../model/validate.ts';
import type { Row } from '../ports.ts';
import { createRuntime, createSurroundings } from '../runtime/create.ts';
import { SESSION_VARIABLE } from '../wire/session-home.ts';
import { superviseIn } from '../wire/supervision.ts';
import { environmentInFront } from './child-environment.ts';
import { commandName } from './command-name.ts';
import { type CommonOptions, configFrom, localActor, requireUsable, visit } from './context.ts';
import { createLogger } from './logger.ts';
import { requirePerson } from './person-only.ts';
import { requireProgram } from './programs.ts';
import { untilInputEnds } from './stopping.ts';

export interface McpOptions extends CommonOptions {
  readonly name?: string;
  readonly url?: string;
  readonly server?: string;
}

/** Whoever started us is an agent of this machine's owner; what a person says at its client is the owner's word. */
const LOCAL_AGENT: Actor = { id: 'agent:local', kind: 'agent', scopes: ['*'], door: 'mcp' };
const LINE_LIMIT = 16 * 1024 * 1024;

export async function mcp(command: readonly string[], options: McpOptions): Promise<void> {
  const config = await configFrom(options);
  const { name, upstream } = upstreamFor(config, command, options);
  if (upstream.command) await requireProgram(upstream.command, upstream.cwd);
  await requireUsable(config.dataDir);
  const runtime = await createRuntime(config, {
    ...createSurroundings(createLogger),
    name: 'mcp',
    mounts: 'harnesses',
    recovers: false,
    prepare: ({ deps }) => ({ tools: [createUpstream(name, upstream, deps)] }),
  });
  const { bridge, prepared, deps, logger: log } = runtime;
  const settings = settingsOf(await runtime.section('mcp'));
  // The client that started this command is the agent whose calls are decided here.
  superviseIn(config.dataDir, { parentIsAgent: true });
  const stints = createStints(bridge, settings, deps);
  const desk = createDesk(name, { bridge, stints, settings, deps });
  const streams = { input: process.stdin, output: process.stdout };
  try {
    const home = process.env[SESSION_VARIABLE];
    // Started by an agent that works in a session of ours: nobody sits in front of it, and its questions are shown there.
    const person = home ? {} : { person: { ...localActor(), door: 'mcp' } };
    const options = { actor: LOCAL_AGENT, ...person, desk, log, lineLimit: LINE_LIMIT, home };
    await untilInputEnds(process.stdin, () => serveStdio(streams, options));
  } finally {
    desk.close();
    await stints.close();
    await Promise.all(prepared.tools.map((tools) => tools.close?.()));
    await runtime.close();
  }
}

/** Tools whose definitions changed since they were first seen, and what is different. */
export async function listPins(options: CommonOptions & { readonly json?: boolean }): Promise<void> {
  const { differences } = await import('../core/pins.ts');
  await visit(options, async ({ bridge }) => {
    const changed = await changedPins(bridge);
    if (changed.length === 0 && !options.json) process.stdout.write('Every tool is what it was when first seen.\n');
    for (const pin of changed) {
      const { pending } = pin.metadata as { pending: Pick<Skill, 'metadata'> };
      const what = differences(pin, pending);
      const told = { id: pin.id, server: pin.source ?? '', tool: pin.name, differences: what };
      process.stdout.write(
        options.json
          ? `${JSON.stringify(told)}\n`
          : `${told.server} ${told.tool}\n${what.map((line) => `  ${line}\n`).join('')}`,
      );
    }
  });
}

/** From now on this tool is what it says it is now. */
export async function acceptPin(server: string, tool: string, options: CommonOptions): Promise<void> {
  requirePerson((await configFrom(options)).dataDir, 'accepting a changed tool');
  await visit(options, async ({ bridge }) => {
    const pin = (await changedPins(bridge)).find(({ source, name }) => source === server && name === tool);
    if (!pin) throw new Fault('not_found', `no changed definition of ${tool} of ${server} waits to be accepted`);
    const { metadata, ...body } = (pin.metadata as { pending: JsonObject }).pending;
    const accepted = { object: 'skill' as const, id: pin.id, body, metadata: metadata as JsonObject };
    await bridge.submit({ kind: 'resource.update', actor: localActor(), body: accepted });
    process.stdout.write(`${tool} of ${server} may be used as it is now\n`);
  });
}

async function changedPins(bridge: House['bridge']): Promise<(Skill & Row)[]> {
  const found: (Skill & Row)[] = [];
  for (let after: string | undefined; ; ) {
    const page = await bridge.list<Skill & Row>(localActor(), { object: 'skill', limit: 200, ...(after && { after }) });
    found.push(...page.data.filter(({ metadata }) => metadata.pinned === true && metadata.pending !== undefined));
    if (!page.next) return found;
    after = page.next;
  }
}

/** The command as given, an address, or a server the configuration has under a name. */
function upstreamFor(config: Config, command: readonly string[], { name, url, server }: McpOptions) {
  const ways = [command.length > 0, url !== undefined, server !== undefined].filter(Boolean).length;
  if (ways !== 1) {
    throw new Fault('invalid_request', 'say which server: a command after --, or --url <address>, or --server <name>');
  }
  if (server !== undefined) {
    const section = own(config.tools, server)?.mcp;
    if (!section) throw new Fault('not_found', `the configuration has no tools.${server}.mcp`);
    return { name: server, upstream: check(upstreamSchema, section, `tools.${server}.mcp`) as UpstreamConfig };
  }
  const upstream: UpstreamConfig =
    url === undefined ? { command: [...command], env: environmentInFront(config.vaults) } : { url };
  return { name: name ?? commandName(url === undefined ? command : [new URL(url).hostname], 'server'), upstream };
}
