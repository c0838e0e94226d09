/** The health of everything that the gateway depends on, as far as it is known: a part that was not used yet is not called healthy. */
import type { Actor } from '../model/actions.ts';
import type { Bridge } from '../ports/index.ts';
import { nothingIfHidden } from './roles.ts';
import type { ConsoleServices, PartHealth } from './services.ts';

export async function healthOf(
  bridge: Bridge,
  services: Pick<ConsoleServices, 'health' | 'parts'>,
  actor: Actor,
): Promise<readonly PartHealth[]> {
  const [agents, addresses, servers] = await Promise.all([
    bridge.agents(actor).catch(nothingIfHidden),
    bridge.agentAddresses(actor).catch(nothingIfHidden),
    bridge.serverStates(actor).catch(nothingIfHidden),
  ]);
  const parts = services.parts();
  const found: PartHealth[] = [...services.health()];
  for (const { name } of agents) {
    const own = addresses.filter(({ agent }) => agent === name);
    for (const { address, state, reason } of own) {
      found.push({ kind: 'agent', name, state, detail: [address, reason].filter(Boolean).join(': ') });
    }
    // An agent without an address is a program that is started for its work, or a part of this process.
    const configured = parts.some((part) => part.kind === 'agent' && part.name === name);
    const state = configured ? 'started when used' : 'built in';
    if (own.length === 0) found.push({ kind: 'agent', name, state, detail: null });
  }
  for (const { name, state, reason } of servers) {
    found.push({ kind: 'tool server', name, state, detail: reason ?? null });
  }
  for (const { kind, name, protocol } of parts) {
    if (kind === 'harness') found.push({ kind, name, state: 'asked for each act', detail: protocol });
  }
  return found;
}
