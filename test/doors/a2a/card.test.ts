/** Cards: what is mounted and nothing else, signed over what travels, the same bytes until something changes. */
import { createPublicKey, verify as verifies } from 'node:crypto';
import { verifyAgentCardSignature } from '@a2a-js/sdk';
import { expect, test } from 'vitest';
import { canonicalJson } from '../../../src/receipt/seal/canonical-json.ts';
import { openPeer } from '../../support/a2a/gateway.ts';
import { scriptedAgent } from '../../support/gateway/agents.ts';
import { countingTools } from '../../support/gateway/tools.ts';

const CARD = '/.well-known/agent-card.json';
const about = {
  description: 'Writes.',
  version: '3.1',
  skills: [{ id: 'write', name: 'Write', description: 'Writes things down.' }],
};
const writer = { ...scriptedAgent(async () => undefined, { name: 'writer' }), about };
const plain = scriptedAgent(async () => undefined, { name: 'plain' });
const publicCard = { authorization: '' };

test('each agent has its own, and the default one stands at the root, too', async () => {
  const peer = await openPeer({ agents: [writer, plain] });
  const own = (await peer.call('GET', `/a2a/writer${CARD}`, undefined, publicCard)).body;
  expect(own.name).toBe('writer');
  expect([own.description, own.version]).toEqual(['Writes.', '3.1']);
  expect(own.skills).toEqual([{ ...about.skills[0], tags: ['writer'] }]);
  expect(own.supportedInterfaces).toEqual([
    { url: `${peer.url}/a2a/writer`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
    { url: `${peer.url}/a2a/writer`, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
    { url: `${peer.url}/a2a/writer`, protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
    { url: `${peer.url}/a2a/writer`, protocolBinding: 'HTTP+JSON', protocolVersion: '0.3' },
  ]);
  expect(own.securitySchemes).toEqual({ bearer: { httpAuthSecurityScheme: { scheme: 'Bearer' } } });
  expect(
    own.capabilities.extensions.map(({ uri, required }: { uri: string; required?: boolean }) => [uri, required]),
  ).toEqual(
    ['record', 'asks', 'activity', 'resume', 'once', 'visibility', 'pieces', 'text-answers'].map((name) => [
      `urn:tollbridge:a2a:${name}:v1`,
      undefined,
    ]),
  );
  expect((await peer.call('GET', CARD, undefined, publicCard)).body).toEqual(own);
  expect((await peer.call('GET', `/a2a/plain${CARD}`, undefined, publicCard)).body.name).toBe('plain');
  expect((await peer.call('GET', `/a2a/nobody${CARD}`, undefined, publicCard)).status).toBe(404);
});

test('is not sent again to the client that has it', async () => {
  const peer = await openPeer({ agents: [writer] });
  const first = await peer.call('GET', CARD, undefined, publicCard);
  const etag = first.headers.get('etag') as string;
  expect(first.headers.get('cache-control')).toBe('public, max-age=300');
  expect(first.headers.get('vary')).toBe('A2A-Version');
  expect(first.headers.get('last-modified')).toEqual(expect.any(String));
  const again = await peer.call('GET', CARD, undefined, { ...publicCard, 'if-none-match': `W/"other", ${etag}` });
  expect([again.status, again.body]).toEqual([304, '']);
  const older = await peer.call('GET', CARD, undefined, { ...publicCard, 'if-none-match': etag, 'a2a-version': '' });
  expect(older.status).toBe(200);
});

test('is signed with the key of the gateway, over the JSON that travels', async () => {
  const peer = await openPeer({ agents: [writer] });
  const { body } = await peer.call('GET', CARD, undefined, publicCard);
  const { keys } = peer.at.runtime.keyring.jwks() as unknown as { keys: { kid: string }[] };
  const verify = verifyAgentCardSignature(async (kid) => keys.find((key) => key.kid === kid) as never);
  expect(body.securityRequirements).toEqual([{ schemes: { bearer: { list: [] } } }]);
  await verify(body);
  const schemes = { bearer: { httpAuthSecurityScheme: { scheme: 'Basic' } } };
  await expect(verify({ ...body, securitySchemes: schemes })).rejects.toThrow();
  await expect(verify({ ...body, description: 'Deletes.' })).rejects.toThrow();
});

interface Signature {
  readonly protected: string;
  readonly signature: string;
}

/** Whether one of the signatures holds for this text, with a key found where the signature says keys are. */
async function holdsFor(text: string, signatures: readonly Signature[]): Promise<boolean> {
  for (const { protected: header, signature } of signatures) {
    const { jku, kid, alg, typ } = JSON.parse(Buffer.from(header, 'base64url').toString());
    expect([alg, typ]).toEqual(['EdDSA', 'JOSE']);
    const { keys } = (await (await fetch(jku)).json()) as { keys: { kid: string }[] };
    const key = createPublicKey({ key: keys.find((each) => each.kid === kid) as object, format: 'jwk' } as never);
    const payload = Buffer.from(text).toString('base64url');
    if (verifies(null, Buffer.from(`${header}.${payload}`), key, Buffer.from(signature, 'base64url'))) return true;
  }
  return false;
}

test('is signed for every reader: as it was sent, as the SDKs decode it, and as those of 0.3 do', async () => {
  const peer = await openPeer({ agents: [{ ...writer, about: { ...about, description: 'Écrit.' } }] });
  const { keys } = peer.at.runtime.keyring.jwks() as unknown as { keys: { kid: string }[] };
  const decoded = verifyAgentCardSignature(async (kid) => keys.find((key) => key.kid === kid) as never);
  for (const version of ['1.0', '']) {
    const { body } = await peer.call('GET', CARD, undefined, { ...publicCard, 'a2a-version': version });
    const { signatures, ...card } = body;
    expect(await holdsFor(canonicalJson(card), signatures)).toBe(true);
    expect(await holdsFor(canonicalJson({ ...card, description: 'Deletes.' }), signatures)).toBe(false);
    await decoded(body);
    if (version === '1.0') continue;
    // The text a2a-sdk 0.3.26 for Python makes of this card, from its own function.
    const extensions = card.capabilities.extensions;
    const python = {
      additionalInterfaces: card.additionalInterfaces,
      capabilities: { extensions, pushNotifications: true, streaming: true },
      defaultInputModes: card.defaultInputModes,
      defaultOutputModes: card.defaultOutputModes,
      description: 'Écrit.',
      name: 'writer',
      securitySchemes: { bearer: { scheme: 'bearer' } },
      skills: card.skills,
      supportsAuthenticatedExtendedCard: true,
      url: card.url,
      version: '3.1',
    };
    expect(await holdsFor(canonicalJson(python).replace('É', '\\u00c9'), signatures)).toBe(true);
  }
});

test('addresses in it are the public ones, also those of its keys', async () => {
  const peer = await openPeer({ agents: [writer], publicUrl: 'https://gateway.example/b' });
  for (const version of ['1.0', '']) {
    const { body } = await peer.call('GET', CARD, undefined, { ...publicCard, 'a2a-version': version });
    const { jku } = JSON.parse(Buffer.from(body.signatures[0].protected, 'base64url').toString());
    expect(jku).toBe('https://gateway.example/b/.well-known/jwks.json');
    const addresses = JSON.stringify(body).match(/https?:[^"]+/g) ?? [];
    expect(new Set(addresses)).toEqual(new Set(['https://gateway.example/b/a2a/writer']));
  }
  expect((await peer.call('GET', '/.well-known/jwks.json', undefined, publicCard)).body).toEqual(
    peer.at.runtime.keyring.jwks(),
  );
});

test('the configuration has the last word on what it says: skills, icon, documentation, provider', async () => {
  const skill = { id: 'bill', name: 'Bill', description: 'Writes bills.', tags: ['money'], examples: ['Bill Ana'] };
  const shown = { skills: [skill], icon_url: 'https://x.example/i.png', documentation_url: 'https://x.example/' };
  const peer = await openPeer({
    agents: [writer, plain],
    terms: new Map([['writer', { about: shown }]]),
    config: { provider: { organization: 'Example', url: 'https://x.example' } },
  });
  const { body } = await peer.call('GET', `/a2a/writer${CARD}`, undefined, publicCard);
  expect(body).toMatchObject({
    description: 'Writes.',
    iconUrl: 'https://x.example/i.png',
    documentationUrl: 'https://x.example/',
    provider: { organization: 'Example', url: 'https://x.example' },
    skills: [skill],
  });
  const other = (await peer.call('GET', `/a2a/plain${CARD}`, undefined, publicCard)).body;
  expect([other.iconUrl, other.skills[0].name]).toEqual([undefined, 'Run a task']);
});

test('is signed anew when the key was changed', async () => {
  const peer = await openPeer({ agents: [writer] });
  const signedWith = async () => {
    const { body, headers } = await peer.call('GET', CARD, undefined, publicCard);
    const { kid } = JSON.parse(Buffer.from(body.signatures[0].protected, 'base64url').toString());
    return { kid, etag: headers.get('etag') };
  };
  const before = await signedWith();
  await peer.at.runtime.keyring.rotate();
  const after = await signedWith();
  const { keys } = peer.at.runtime.keyring.jwks() as unknown as { keys: { kid: string }[] };
  expect([before.kid, after.kid]).toEqual(keys.map(({ kid }) => kid));
  expect(after.etag).not.toBe(before.etag);
});

test('readers of 0.3 find their own members', async () => {
  const peer = await openPeer({ agents: [writer] });
  const { body } = await peer.call('GET', CARD, undefined, { ...publicCard, 'a2a-version': '' });
  expect(body).toMatchObject({
    url: `${peer.url}/a2a/writer`,
    preferredTransport: 'JSONRPC',
    protocolVersion: '0.3.0',
    additionalInterfaces: [{ url: `${peer.url}/a2a/writer`, transport: 'HTTP+JSON' }],
    supportsAuthenticatedExtendedCard: true,
    capabilities: { extendedAgentCard: true },
    security: [{ bearer: [] }],
  });
  expect(body.securityRequirements).toBeUndefined();
  // Strict readers of 1.0 want one member they know in each scheme; readers of 0.3 want a type.
  expect(body.securitySchemes).toEqual({
    bearer: { type: 'http', scheme: 'bearer', httpAuthSecurityScheme: { scheme: 'bearer' } },
  });
  const only = await openPeer({ agents: [writer], config: { legacy: false } });
  const pure = (await only.call('GET', CARD, undefined, { ...publicCard, 'a2a-version': '' })).body;
  expect(pure.url).toBeUndefined();
  expect(pure.supportedInterfaces.length).toBe(2);
});

test('the extended one is for those who say who they are, and shows what they may see', async () => {
  const peer = await openPeer({
    agents: [writer],
    tools: [countingTools({ pay: { effect: 'pay', description: 'Pays.' } })],
  });
  const client = await peer.client('HTTP+JSON');
  const extended = await client.getAgentCard();
  expect(extended.skills.map(({ id }) => id)).toEqual(['write', 'skill_pay']);
  const rpc = await peer.rpc('GetExtendedAgentCard', {}, { authorization: 'Bearer nothing' });
  expect(rpc.body.result.skills.map(({ id }: { id: string }) => id)).toEqual(['write']);
  for (const [method, path, body] of [
    ['POST', '/a2a/writer', { jsonrpc: '2.0', id: 1, method: 'GetExtendedAgentCard' }],
    ['GET', '/a2a/writer/extendedAgentCard', undefined],
  ] as const) {
    expect((await peer.call(method, path, body, publicCard)).status).toBe(401);
  }
});

test('the extended one is for each caller its own: what rules refuse it is not offered', async () => {
  const peer = await openPeer({
    agents: [writer],
    tools: [countingTools({ pay: { effect: 'pay', description: 'Pays.' }, read: { effect: 'read' } })],
    rules: '- { id: no-pay-for-bo, when: { principal: bo, tool: pay }, then: block }',
  });
  const skills = async (token: string) =>
    (await peer.rpc('GetExtendedAgentCard', {}, { authorization: `Bearer ${token}` })).body.result.skills.map(
      ({ id }: { id: string }) => id,
    );
  expect(await skills('ana')).toEqual(['write', 'skill_pay', 'skill_read']);
  expect(await skills('bo')).toEqual(['write', 'skill_read']);
});

test('there is no extended one where the configuration says so', async () => {
  const peer = await openPeer({ agents: [writer], config: { extended_card: false } });
  expect((await peer.rpc('GetExtendedAgentCard', {})).body.error.code).toBe(-32004);
  const { capabilities } = (await peer.call('GET', CARD, undefined, publicCard)).body;
  expect(capabilities.extendedAgentCard ?? false).toBe(false);
});
