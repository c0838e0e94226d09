/** How the gateway is configured for the server of a scenario: with what the scenario gave us in advance, and nothing more. */
import type { UpstreamConfig } from '../../../adapters/mcp/config.ts';
import type { Loose } from '../../support/mcp-fixture-asking.ts';

export interface Configured {
  readonly upstream: UpstreamConfig;
  readonly secrets: Readonly<Record<string, string>>;
}

export function upstreamFor(url: string, scenario: string, context: Loose): Configured {
  if (scenario.startsWith('auth/client-credentials') && typeof context.client_secret === 'string') {
    return {
      upstream: { url, oauth: { client_id: context.client_id, client_secret: 'given' } },
      secrets: { given: context.client_secret },
    };
  }
  return { upstream: { url }, secrets: {} };
}
