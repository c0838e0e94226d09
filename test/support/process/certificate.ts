/** A certificate of one's own, made anew for each test: a key that stands in a file of the repository is no secret. */
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** For localhost and 127.0.0.1, signed by itself. */
export function makeCertificate(days = 30, serial = Math.floor(Math.random() * 2 ** 40)): Certificate {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const der = certificateOf(privateKey, publicKey, serial, days);
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
  };
}

export function writeCertificate(dir: string, { cert, key }: Certificate): { cert: string; key: string } {
  const paths = { cert: join(dir, 'cert.pem'), key: join(dir, 'key.pem') };
  writeFileSync(paths.cert, cert);
  writeFileSync(paths.key, key, { mode: 0o600 });
  return paths;
}

const tlv = (tag: number, ...parts: readonly Buffer[]): Buffer => {
  const body = Buffer.concat(parts);
  const { length } = body;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from([tag, ...size]), body]);
};
const sequence = (...parts: readonly Buffer[]) => tlv(0x30, ...parts);
const hex = (text: string) => Buffer.from(text, 'hex');
const oid = (text: string) => tlv(0x06, hex(text));
const time = (date: Date) => tlv(0x18, Buffer.from(`${date.toISOString().replace(/[-:T]|\.\d+/g, '')}`));

function certificateOf(privateKey: KeyObject, publicKey: KeyObject, serial: number, days: number): Buffer {
  const algorithm = sequence(oid('2a8648ce3d040302'));
  const name = sequence(tlv(0x31, sequence(oid('550403'), tlv(0x0c, Buffer.from('localhost')))));
  const now = Date.now();
  const from = new Date(Math.min(now, now + days * 86_400_000) - 86_400_000);
  const names = sequence(
    tlv(0x82, Buffer.from('localhost')),
    tlv(0x82, Buffer.from('gateway.example')),
    tlv(0x87, Buffer.from([127, 0, 0, 1])),
  );
  const extensions = tlv(
    0xa3,
    sequence(
      sequence(oid('551d13'), tlv(0x01, hex('ff')), tlv(0x04, sequence(tlv(0x01, hex('ff'))))),
      sequence(oid('551d11'), tlv(0x04, names)),
    ),
  );
  const signed = sequence(
    tlv(0xa0, tlv(0x02, hex('02'))),
    tlv(0x02, Buffer.concat([hex('01'), hex(serial.toString(16).padStart(12, '0'))])),
    algorithm,
    name,
    sequence(time(from), time(new Date(now + days * 86_400_000))),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    extensions,
  );
  const signature = sign('sha256', signed, privateKey);
  return sequence(signed, algorithm, tlv(0x03, hex('00'), signature));
}
