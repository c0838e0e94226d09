/** An OpenID provider on this machine: discovery, authorization with PKCE, tokens, keys. What it says of a person can be changed. */
import { hash, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { onTestFinished } from 'vitest';

export interface OidcProvider {
  readonly issuer: string;
  /** Claims of the next tokens, over those that are right. */
  claims: JWTPayload;
  /** Members of the next token answers, over those that are right. */
  answer: Record<string, unknown>;
  /** Members of the discovery document, over those that are right. */
  document: Record<string, unknown>;
  /** Signs the next tokens with a key that is not published. */
  otherKey: boolean;
  /** Requests for tokens that were refused, with the reason. */
  readonly refused: string[];
  readonly client: { readonly id: string; readonly secret: string };
}

interface Issued {
  readonly nonce: string;
  readonly challenge: string;
  readonly redirect: string;
}

export async function openOidcProvider(): Promise<OidcProvider> {
  const signing = await generateKeyPair('ES256');
  const other = await generateKeyPair('ES256');
  const keys = { keys: [{ ...(await exportJWK(signing.publicKey)), kid: 'k1', alg: 'ES256', use: 'sig' }] };
  const codes = new Map<string, Issued>();
  const client = { id: 'tollbridge-console', secret: 'a client secret of the test' };

  const server = createServer((request, response) => {
    route(request, response).catch((thrown: Error) => response.writeHead(500).end(thrown.message));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const at: OidcProvider = { issuer, claims: {}, answer: {}, document: {}, otherKey: false, refused: [], client };
  return at;

  async function route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '', issuer);
    const json = (status: number, body: object) =>
      void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    switch (url.pathname) {
      case '/.well-known/openid-configuration':
        return json(200, {
          issuer,
          authorization_endpoint: `${issuer}/authorize`,
          token_endpoint: `${issuer}/token`,
          jwks_uri: `${issuer}/keys`,
          authorization_response_iss_parameter_supported: true,
          ...at.document,
        });
      case '/keys':
        return json(200, keys);
      case '/authorize':
        return authorize(url.searchParams, response);
      case '/token': {
        const body: Buffer[] = [];
        for await (const chunk of request) body.push(chunk as Buffer);
        const { status, answer } = await token(request, new URLSearchParams(Buffer.concat(body).toString()));
        return json(status, answer);
      }
      default:
        return json(404, {});
    }
  }

  /** The person is signed in here already, and agrees. */
  function authorize(asked: URLSearchParams, response: ServerResponse): void {
    const get = (name: string) => asked.get(name) ?? '';
    const wrong =
      get('response_type') !== 'code' ||
      get('client_id') !== client.id ||
      get('code_challenge_method') !== 'S256' ||
      !get('scope').split(' ').includes('openid') ||
      !get('nonce');
    const back = new URL(get('redirect_uri'));
    if (wrong) back.searchParams.set('error', 'invalid_request');
    else {
      const code = randomBytes(16).toString('hex');
      codes.set(code, { nonce: get('nonce'), challenge: get('code_challenge'), redirect: get('redirect_uri') });
      back.searchParams.set('code', code);
    }
    back.searchParams.set('state', get('state'));
    back.searchParams.set('iss', issuer);
    response.writeHead(302, { location: back.href }).end();
  }

  async function token({ headers }: IncomingMessage, form: URLSearchParams) {
    const issued = codes.get(form.get('code') ?? '');
    codes.delete(form.get('code') ?? '');
    const user = [client.id, client.secret].map(encodeURIComponent).join(':');
    const reason = !issued
      ? 'code'
      : headers.authorization !== `Basic ${Buffer.from(user).toString('base64')}`
        ? 'client'
        : form.get('redirect_uri') !== issued.redirect
          ? 'redirect_uri'
          : hash('sha256', form.get('code_verifier') ?? '', 'base64url') !== issued.challenge
            ? 'code_verifier'
            : undefined;
    if (!issued || reason) {
      at.refused.push(reason ?? '');
      return { status: 400, answer: { error: 'invalid_grant' } };
    }
    const now = Math.floor(Date.now() / 1000);
    const claims = {
      iss: issuer,
      aud: client.id,
      sub: 'ana',
      iat: now,
      exp: now + 300,
      nonce: issued.nonce,
      ...at.claims,
    };
    const id_token = await new SignJWT(claims)
      .setProtectedHeader({ alg: 'ES256', kid: 'k1' })
      .sign(at.otherKey ? other.privateKey : signing.privateKey);
    return { status: 200, answer: { token_type: 'Bearer', access_token: 'unused', id_token, ...at.answer } };
  }
}

/** The section `auth` of a gateway that lets people sign in there; `rest` follows in `sign_in`. */
export function oidcConfig({ issuer, client }: OidcProvider, rest: string): string {
  return `auth:
  oauth:
    issuer: ${issuer}
    audience: tollbridge
    jwks_uri: ${issuer}/keys
    sign_in: { client_id: ${client.id}, secret: oidc, ${rest} }
`;
}
