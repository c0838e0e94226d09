/** Where requests may go: the configuration may name an address of this network; a document may not. */
import type { OutboundRules } from '../../../src/transport/outbound/public-fetch.ts';

export const PUBLIC_ONLY: OutboundRules = { allow: [], insecure: false };

export function named(address: string): OutboundRules {
  const { hostname, port, protocol } = new URL(address);
  const host = hostname.toLowerCase().replace(/^\[|\]$/g, '');
  return { allow: [`${host}:${port || (protocol === 'https:' ? '443' : '80')}`], insecure: true };
}
