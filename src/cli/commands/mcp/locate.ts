/**
 * A server by its name: under `tools` in the configuration, or in the settings of a client, where `tollbridge init` named it. It
 * is reached as the gateway or the client would reach it.
 */
import { mcp as adapter, type UpstreamConfig } from '../../../../adapters/mcp/index.ts';
import { createSecrets } from '../../../auth/vaults.ts';
import { createIds, systemClock } from '../../../core/clock.ts';
import { createRedactor } from '../../../core/redaction/redact.ts';
import { Fault } from '../../../model/faults.ts';
import type { TSchema } from '../../../model/type.ts';
import { check } from '../../../model/validate.ts';
import { own } from '../../../model/values/own.ts';
import type { PartContext, ToolBackend } from '../../../ports/index.ts';
import type { Config } from '../../../runtime/config/config.ts';
import { createLogger } from '../../../runtime/logger.ts';
import { environmentInFront } from '../../child-environment.ts';
import { type CommonOptions, quietConfigFrom } from '../../context.ts';
import { EDITORS, here } from '../../editors/editors.ts';
import { type NamedServer, serverNamed } from '../../editors/settings-edit.ts';
import { readSettings } from '../../editors/settings-file.ts';
import { addressedUpstream, withHeaderVault } from './addressed.ts';

/** Undefined when nothing names this server. */
export async function openLocated(server: string, options: CommonOptions): Promise<ToolBackend | undefined> {
  const config = withHeaderVault(await quietConfigFrom(options));
  const section = own(config.tools, server)?.mcp;
  if (section) {
    const schema = adapter.parts.tools.configSchema as TSchema;
    return opened(server, check(schema, section, `tools.${server}.mcp`) as UpstreamConfig, config, process.env);
  }
  const named = await inSettings(server);
  if (!named) return undefined;
  const env = { ...process.env, ...resolved(server, named.env) };
  const upstream: UpstreamConfig =
    'command' in named.server
      ? {
          command: [...named.server.command],
          env: { ...environmentInFront(config.vaults), ...resolved(server, named.env) },
        }
      : addressedUpstream(
          named.server.remote.url,
          { headerEnv: named.headerEnv, transport: named.server.remote.transport ?? 'auto' },
          env,
        );
  return opened(server, upstream, config, env);
}

function opened(name: string, upstream: UpstreamConfig, config: Config, env: NodeJS.ProcessEnv): ToolBackend {
  const redactor = createRedactor();
  const deps = {
    name,
    log: createLogger(redactor),
    clock: systemClock,
    ids: createIds(),
    secret: createSecrets({ vaults: config.vaults, env, learn: redactor.learn }),
  };
  // A tool backend uses none of the dependencies that only a serving process has.
  return adapter.parts.tools.open(upstream, deps as unknown as PartContext);
}

async function inSettings(server: string): Promise<NamedServer | undefined> {
  const lists = EDITORS.flatMap((editor) => editor.lists(here())).filter(({ speaks }) => speaks === 'mcp');
  for (const list of lists) {
    const text = await readSettings(list.file).catch(() => '');
    const found = serverNamed(text, list, server);
    if (found) return found;
  }
  return undefined;
}

/** The variables of an entry, with the references that clients resolve. */
function resolved(server: string, variables: Readonly<Record<string, string>>): Record<string, string> {
  const value = (text: string) =>
    text.replace(
      /\$\{(?:env:)?([A-Za-z_]\w*)(?::-([^}]*))?\}|\$\{[^}]*\}/g,
      (whole, name?: string, otherwise?: string) => {
        const found = name === undefined ? undefined : (own(process.env, name) ?? otherwise);
        if (found !== undefined) return found;
        throw new Fault(
          'invalid_request',
          `${whole} in the settings of ${server} is not known here; set it as a variable`,
        );
      },
    );
  return Object.fromEntries(Object.entries(variables).map(([name, text]) => [name, value(text)]));
}
