/** Starts or reaches each configured tool server and asks for its tools. One that does not answer does not delay the others. */
import { setTimeout as pause } from 'node:timers/promises';
import { mcp, type UpstreamConfig } from '../../../adapters/mcp/index.ts';
import { createSecrets } from '../../auth/vaults.ts';
import { createIds, systemClock } from '../../core/clock.ts';
import type { Config } from '../../runtime/config/config.ts';
import { errorMessageOf } from '../output/error-output.ts';
import { counted } from '../output/terminal-text.ts';
import { bad, type Finding, ok, warn } from './finding.ts';

/** A program that is installed first takes longer; that is worth knowing too. */
const TIMEOUT_MS = 10_000;

export async function lookAtToolServers(config: Config, timeoutMs = TIMEOUT_MS): Promise<readonly Finding[]> {
  const secret = createSecrets({ vaults: config.vaults, env: process.env, learn() {} });
  const log = { info() {}, warn() {}, error() {} };
  const deps = { log, clock: systemClock, ids: createIds(), secret };
  const servers = Object.entries(config.tools).flatMap(([name, { mcp: section }]) =>
    section ? [{ name, section }] : [],
  );
  return await Promise.all(
    servers.map(async ({ name, section }) => {
      const at = `tools.${name}.mcp`;
      const server = mcp.parts.tools.open(section as UpstreamConfig, { ...deps, name } as never);
      const late = new AbortController();
      try {
        const found = await Promise.race([server.list(), pause(timeoutMs, undefined, { signal: late.signal })]);
        if (found) return ok('server', `${name} answers: ${counted(found.length, 'tool')}`);
        const fix = `start it by itself and see why; if it is only slow, raise ${at}.start_timeout_ms above its time`;
        return warn('server', `${name} has not answered within ${timeoutMs / 1000} s`, fix);
      } catch (thrown) {
        return bad('server', `${name}: ${errorMessageOf(thrown).sentence}`, `correct ${at}, or start the server`);
      } finally {
        late.abort();
        await server.close?.().catch(() => {});
      }
    }),
  );
}
