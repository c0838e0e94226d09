/** How the gateway is configured for the server of a scenario: with what the scenario gave us in advance, and nothing more. */
import type { UpstreamConfig } from '../../../adapters/mcp/config.ts';
import type { Loose } from '../../support/mcp/fixture/asking.ts';

export interface Configured {
  readonly upstream: UpstreamConfig;
  readonly secrets: Readonly<Record<string, string>>;
}

export async function upstreamFor(url: string, scenario: string, context: Loose): Promise<Configured> {
  if (scenario.startsWith('auth/client-credentials') && typeof context.client_secret === 'string') {
    return {
      upstream: {
        url,
        oauth: { client_id: context.client_id, client_secret: 'client-secret', issuers: await issuersOf(url) },
      },
      secrets: { 'client-secret': context.client_secret },
    };
  }
  if (!scenario.startsWith('auth/')) return { upstream: { url }, secrets: {} };
  const { client_id, client_secret } = context;
  const registered = client_id !== undefined;
  return {
    upstream: {
      url,
      sign_in: {
        kept_as: 'signed-in',
        redirect: 'http://localhost:3000/callback',
        ...(registered ? { client_id } : { client_document: 'https://conformance-test.local/client-metadata.json' }),
        ...(client_secret !== undefined && { client_secret: 'client-secret' }),
      },
    },
    secrets: client_secret === undefined ? {} : { 'client-secret': client_secret },
  };
}

/** The issuers that a person who registers a client would know; the suite names them only in its metadata. */
async function issuersOf(url: string): Promise<string[]> {
  const { origin, pathname } = new URL(url);
  const answer = await fetch(`${origin}/.well-known/oauth-protected-resource${pathname}`);
  const { authorization_servers = [origin] } = answer.ok ? ((await answer.json()) as Loose) : {};
  return authorization_servers;
}

/** A person who agrees to everything: follows the first step, and says where it would have led. */
export async function agree(address: URL): Promise<URL> {
  const answer = await fetch(address, { redirect: 'manual' });
  const next = answer.headers.get('location');
  if (next === null) throw new Error(`the authorization server sent nobody anywhere (${answer.status})`);
  return new URL(next);
}
