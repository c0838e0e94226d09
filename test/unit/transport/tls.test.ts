/** The port speaking TLS itself: what it takes, what it refuses, and certificates that change while it is open. */
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { connect as connectPlainly } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import { lookAtTls } from '../../../src/cli/doctor/tls.ts';
import { type Gateway, startGateway } from '../../../src/runtime/gateway.ts';
import { readTls, type TlsFiles, watchTls } from '../../../src/runtime/tls-files.ts';
import { type Certificate, makeCertificate, writeCertificate } from '../../support/process/certificate.ts';
import { configIn as configOf } from '../../support/process/config-in.ts';

const V2 = 'agents-protocol-2026-10-11';

async function configIn(dir: string, text: string) {
  writeFileSync(join(dir, 'tollbridge.yaml'), `${text}\n`);
  return await configOf(dir, { data: join(dir, 'data') });
}

function folder(): string {
  const dir = mkdtempSync(join(tmpdir(), 'tollbridge-tls-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

function filesIn(dir: string, certificate: Certificate): TlsFiles {
  return { ...writeCertificate(dir, certificate), minVersion: 'TLSv1.2', hstsSeconds: 3600 };
}

async function started(text = ''): Promise<{ gateway: Gateway; dir: string; certificate: Certificate }> {
  const dir = folder();
  const certificate = makeCertificate();
  writeCertificate(dir, certificate);
  const config = await configIn(
    dir,
    `listen: { port: 0, allowed_hosts: [gateway.example], tls: { cert: cert.pem, key: key.pem${text} } }`,
  );
  const gateway = await startGateway(config);
  onTestFinished(() => gateway.close());
  return { gateway, dir, certificate };
}

interface Got {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: { readonly [name: string]: never };
}

function get(url: string, ca: string, headers: Record<string, string> = {}): Promise<Got> {
  return new Promise((resolve, reject) => {
    const asking = request(url, { ca, headers, servername: 'localhost', agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => (text += chunk));
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: JSON.parse(text || '{}') }),
      );
    });
    asking.on('error', reject).end();
  });
}

function shaken(gateway: Gateway, options: object = {}): Promise<TLSSocket> {
  const port = Number(new URL(gateway.url).port);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false, ...options }, () => resolve(socket));
    socket.on('error', reject);
    onTestFinished(() => void socket.destroy());
  });
}

describe('a gateway with listen.tls', () => {
  test('says https and wss wherever it says where it is, and answers there', async () => {
    const { gateway, certificate } = await started();
    expect(gateway.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
    const { status, body, headers } = await get(`${gateway.url}/v1/agent-card`, certificate.cert, {
      'harn-agents-protocol-version': V2,
    });
    expect(status).toBe(200);
    const card = body as unknown as {
      harn_interfaces: { transport: string; url: string }[];
      a2a_card: { supportedInterfaces: { url: string }[] };
      public_url: string;
    };
    expect(card.public_url).toBe(gateway.url);
    for (const { transport, url } of card.harn_interfaces) {
      expect(url.startsWith(transport === 'websocket' ? 'wss://' : 'https://'), url).toBe(true);
    }
    for (const { url } of card.a2a_card.supportedInterfaces) expect(url.startsWith(gateway.url), url).toBe(true);
    // A browser that received it once would never speak plain HTTP to anything on this machine again.
    expect(headers['strict-transport-security']).toBeUndefined();
  });

  test('the socket it advertises upgrades over TLS', async () => {
    const { gateway, certificate } = await started();
    const { body } = await get(`${gateway.url}/v1/agent-card`, certificate.cert);
    const found = (body as unknown as { interfaces: { transport: string; url: string }[] }).interfaces;
    const url = found.find(({ transport }) => transport === 'websocket')!.url;
    const socket = new WebSocket(url, [], {
      ca: certificate.cert,
      headers: { authorization: `Bearer ${gateway.token}`, 'harn-agents-protocol-version': V2 },
    });
    onTestFinished(() => socket.terminate());
    const [frame] = await once(socket, 'message');
    expect(JSON.parse(String(frame))).toMatchObject({ type: 'ready', protocol_version: V2 });
  });

  test('browsers are asked to stay with https, but not of loopback names', async () => {
    const { gateway, certificate } = await started(", hsts: '1d'");
    const named = await get(`${gateway.url}/v1`, certificate.cert, { host: 'gateway.example' });
    expect(named.headers['strict-transport-security']).toBe('max-age=86400');
    const silent = await started(', hsts: false');
    const { headers } = await get(`${silent.gateway.url}/v1`, silent.certificate.cert, { host: 'gateway.example' });
    expect(headers['strict-transport-security']).toBeUndefined();
  });

  test('takes TLS 1.2 and 1.3, nothing older, and nothing in the clear', async () => {
    const { gateway } = await started();
    expect((await shaken(gateway, { maxVersion: 'TLSv1.2' })).getProtocol()).toBe('TLSv1.2');
    expect((await shaken(gateway)).getProtocol()).toBe('TLSv1.3');
    const older = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' };
    await expect(shaken(gateway, older)).rejects.toThrow();
    const plain = connectPlainly(Number(new URL(gateway.url).port), '127.0.0.1');
    plain.write('GET /v1 HTTP/1.1\r\nHost: localhost\r\n\r\n');
    let received = '';
    plain.on('data', (chunk) => (received += String(chunk))).on('error', () => {});
    await once(plain, 'close');
    expect(received).not.toContain('HTTP/1.1 200');
    const strict = await started(", min_version: '1.3'");
    await expect(shaken(strict.gateway, { maxVersion: 'TLSv1.2' })).rejects.toThrow();
  });

  test('a changed certificate is used for new connections; open ones go on, and a bad one changes nothing', async () => {
    const { gateway, dir, certificate } = await started();
    const before = await shaken(gateway);
    const first = before.getPeerCertificate().serialNumber;
    const serialNow = async () => (await shaken(gateway)).getPeerCertificate().serialNumber;

    const next = makeCertificate();
    // The certificate alone does not belong to the key that is still there.
    writeFileSync(join(dir, 'cert.pem'), next.cert);
    expect(await serialNow()).toBe(first);
    writeFileSync(join(dir, 'key.pem'), next.key);
    await vi.waitFor(async () => expect(await serialNow()).not.toBe(first), { timeout: 10_000, interval: 50 });

    before.write('GET /v1 HTTP/1.1\r\nHost: localhost:1\r\n\r\n');
    const [answer] = await once(before, 'data');
    expect(String(answer)).toMatch(/^HTTP\/1\.1 \d{3} /);
    await expect(get(`${gateway.url}/v1`, certificate.cert)).rejects.toThrow();
    expect((await get(`${gateway.url}/v1`, next.cert)).status).toBe(200);
  });
});

describe('files that cannot be used', () => {
  test.each([
    [
      'a key of another certificate',
      (dir: string) => writeFileSync(join(dir, 'key.pem'), makeCertificate().key),
      'does not belong to',
    ],
    ['no certificate at all', (dir: string) => writeFileSync(join(dir, 'cert.pem'), 'nothing'), 'holds no certificate'],
    ['no key at all', (dir: string) => writeFileSync(join(dir, 'key.pem'), 'nothing'), 'cannot be used'],
    ['a key that is not there', (dir: string) => rmSync(join(dir, 'key.pem')), 'is not there'],
  ])('%s: the gateway does not start, and says which file it is', async (_, spoil, says) => {
    const dir = folder();
    const certificate = makeCertificate();
    const files = filesIn(dir, certificate);
    spoil(dir);
    const fault = await readTls(files).then(
      () => undefined,
      (thrown) => thrown,
    );
    expect(fault?.message).toContain(says);
    expect(fault?.message).toContain(dir);
    expect(JSON.stringify(fault)).not.toContain('PRIVATE KEY');
    const config = await configIn(dir, 'listen: { port: 0, tls: { cert: cert.pem, key: key.pem } }');
    await expect(startGateway(config)).rejects.toThrow(says);
  });

  test('are reported while the pair in use stays', async () => {
    const dir = folder();
    const files = filesIn(dir, makeCertificate());
    const used: unknown[] = [];
    const errors: string[] = [];
    const log = { info() {}, warn() {}, error: (_: object, message: string) => errors.push(message) };
    const watch = watchTls(files, (pair) => used.push(pair), log);
    onTestFinished(() => watch.close());
    writeFileSync(files.cert, makeCertificate().cert);
    await vi.waitFor(() => expect(errors).toHaveLength(1), { timeout: 10_000 });
    expect(used).toEqual([]);
    const good = makeCertificate();
    writeFileSync(files.cert, good.cert);
    writeFileSync(files.key, good.key);
    await vi.waitFor(() => expect(used.length).toBeGreaterThan(0), { timeout: 10_000 });
  });
});

describe('doctor', () => {
  const about = (tls: TlsFiles | undefined, host = '127.0.0.1', publicUrl?: string) =>
    lookAtTls({ tls, host, publicUrl });

  test('knows a good certificate, one that ends soon, one that has ended, and a key that others read', async () => {
    const [good] = await about(filesIn(folder(), makeCertificate(60)));
    expect(good).toMatchObject({ check: 'tls', state: 'ok' });
    const [soon] = await about(filesIn(folder(), makeCertificate(3)));
    expect(soon).toMatchObject({ state: 'warn', fix: 'renew it; saving the file is enough' });
    const [over] = await about(filesIn(folder(), makeCertificate(-3)));
    expect(over).toMatchObject({ state: 'bad' });
    const files = filesIn(folder(), makeCertificate(60));
    chmodSync(files.key, 0o644);
    expect(await about(files)).toMatchObject([{ state: 'bad', fix: `chmod 600 ${files.key}` }, { state: 'ok' }]);
  });

  test('says that a port others reach speaks in the clear, unless a proxy is named', async () => {
    expect(await about(undefined)).toEqual([]);
    expect(await about(undefined, '0.0.0.0')).toMatchObject([{ state: 'warn' }]);
    expect(await about(undefined, '0.0.0.0', 'https://gateway.example')).toEqual([]);
  });
});
