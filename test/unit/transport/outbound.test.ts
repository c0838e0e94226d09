/** Which addresses we call when others name them: none inside, neither by number nor by name nor by a redirect. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import {
  isPublicAddress,
  outboundTrouble,
  postOut,
  type Resolve,
} from '../../../src/transport/outbound/public-fetch.ts';

const STRICT = { allow: [], insecure: false };
const OPEN = { allow: [], insecure: true };
const at =
  (address: string): Resolve =>
  async () => [{ address, family: address.includes(':') ? 6 : 4 }];
const PUBLIC = at('93.184.216.34');

test.each([
  'http://hook.example/',
  'https://127.0.0.1/',
  'https://[::1]/',
  'https://[::ffff:127.0.0.1]/',
  'https://169.254.169.254/latest/meta-data/',
  'https://10.1.2.3/',
  'https://172.16.0.1/',
  'https://192.168.1.1/',
  'https://100.64.0.1/',
  'https://0.0.0.0/',
  'https://2130706433/',
  'https://0x7f000001/',
  'https://0177.0.0.1/',
  'https://127.1/',
  'https://127.0.0.1./',
  'https://[fd00::1]/',
  'https://[fe80::1]/',
  'https://[2002:7f00:1::]/',
  'https://localhost/',
  'https://localhost./',
  'https://db.internal/',
  'https://intranet/',
  'https://user:pw@hook.example/',
  'file:///etc/passwd',
  'gopher://hook.example/',
  'unix:/var/run/x.sock',
  'javascript:alert(1)',
  'not an address',
  '',
])('%s is not called', async (url) => {
  expect(await outboundTrouble(url, STRICT, PUBLIC)).toEqual(expect.any(String));
  const out = { headers: {}, body: '', timeoutMs: 1_000 };
  await expect(postOut(url, STRICT, out, PUBLIC)).rejects.toThrow();
});

test('a name is what it stands for', async () => {
  expect(await outboundTrouble('https://hook.example/x', STRICT, PUBLIC)).toBeUndefined();
  expect(await outboundTrouble('https://hook.example/x', STRICT, at('10.0.0.1'))).toBe(
    'the address is not a public one',
  );
  const both: Resolve = async () => [...(await PUBLIC('')), ...(await at('::1')(''))];
  expect(await outboundTrouble('https://hook.example/x', STRICT, both)).toBe('the address is not a public one');
});

test('a name that moves inside after it was registered is not dialled', async () => {
  const received: string[] = [];
  const server = createServer((request, response) => {
    received.push(request.url ?? '');
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const url = `http://rebinding.example:${port}/hook`;
  expect(await outboundTrouble(url, OPEN, PUBLIC)).toBeUndefined();
  const out = { headers: {}, body: '{}', timeoutMs: 1_000 };
  await expect(postOut(url, OPEN, out, at('127.0.0.1'))).rejects.toThrow('the address is not a public one');
  expect(received).toEqual([]);
  const allowed = { allow: [`rebinding.example:${port}`], insecure: false };
  expect(await postOut(url, allowed, out, at('127.0.0.1'))).toBe(200);
  expect(received).toEqual(['/hook']);
});

test('what is public', () => {
  expect(['8.8.8.8', '93.184.216.34', '2606:4700::1111'].map(isPublicAddress)).toEqual([true, true, true]);
  expect(['224.0.0.1', '255.255.255.255', '::', '::1', 'ff02::1', '2001:db8::1', 'x'].map(isPublicAddress)).toEqual(
    Array.from({ length: 7 }, () => false),
  );
});
