/** Reads the card of each configured A2A agent at every address it has. One that does not answer does not delay the others. */
import { a2a } from '../../../adapters/a2a/index.ts';
import { createSecrets } from '../../auth/vaults.ts';
import { systemClock } from '../../core/clock.ts';
import type { Config } from '../../runtime/config/config.ts';
import { bad, type Finding, ok, warn } from './finding.ts';

export async function lookAtPeers(config: Config): Promise<readonly Finding[]> {
  const secret = createSecrets({ vaults: config.vaults, env: process.env, learn() {} });
  const log = { info() {}, warn() {}, error() {} };
  const found = Object.entries(config.agents).flatMap(([name, { a2a: section }]) =>
    section ? [lookAtPeer(name, section, { log, clock: systemClock, secret, name })] : [],
  );
  return (await Promise.all(found)).flat();
}

async function lookAtPeer(name: string, section: unknown, deps: object): Promise<readonly Finding[]> {
  const peer = a2a.parts.backend.open(section as never, deps as never);
  try {
    const states = (await peer.addresses?.(true)) ?? [];
    const some = states.some(({ state }) => state === 'ready');
    return states.map(({ address, state, reason }) => {
      if (state === 'ready') return ok('agent', `${name} answers at ${address}`);
      const fix = `start it, or correct agents.${name}.a2a.url`;
      // The others have its work meanwhile.
      return (some ? warn : bad)('agent', reason ?? `${name} does not answer at ${address}`, fix);
    });
  } finally {
    await peer.close?.();
  }
}
