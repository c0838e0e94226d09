import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { asFault } from '../../../src/model/faults.ts';
import { bearerOf } from '../../../src/transport/http/bearer.ts';
import { parseJson, readBytes, readJson } from '../../../src/transport/http/body.ts';
import { rawHttp } from '../../support/wire/raw-http.ts';

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

/** Answers with what came of reading the request. */
async function reader(read: (request: IncomingMessage) => unknown) {
  const server = createServer(async (request, response) => {
    try {
      response.end(JSON.stringify({ value: await read(request) }));
    } catch (thrown) {
      const { kind, message, param } = asFault(thrown);
      response.writeHead(400, { connection: 'close' }).end(JSON.stringify({ kind, message, param }));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const limits = { bytes: 1000, depth: 5, values: 20 };
const fault = (text: string | Uint8Array) => {
  try {
    parseJson(typeof text === 'string' ? Buffer.from(text) : text, limits);
  } catch (thrown) {
    return asFault(thrown).kind;
  }
  return 'fine';
};

test('JSON within bounds is what it says', () => {
  expect(parseJson(Buffer.from('{"a":[1,"]}\\"{",null]}'), limits)).toEqual({ a: [1, ']}"{', null] });
  expect(parseJson(Buffer.from('[[[[[1]]]]]'), limits)).toEqual([[[[[1]]]]]);
  expect(parseJson(Buffer.from('  '), limits)).toBe(undefined);
  expect(parseJson(Buffer.from('"\\ud83d\\ude00"'), limits)).toBe('\u{1f600}');
});

test('JSON out of bounds is refused by its brackets', () => {
  expect(fault('[[[[[[1]]]]]]')).toBe('payload_too_large');
  expect(fault(`[${'1,'.repeat(30)}1]`)).toBe('payload_too_large');
  expect(fault(`${'['.repeat(20_000)}${']'.repeat(20_000)}`)).toBe('payload_too_large');
  expect(fault(`{"a":"${'['.repeat(50)}"}`)).toBe('fine');
});

test('what cannot be written down again is refused', () => {
  expect(fault('{"a":"\\ud800"}')).toBe('invalid_request');
  expect(fault('{"\\udc00":1}')).toBe('invalid_request');
  expect(fault('[1e400]')).toBe('invalid_request');
  expect(fault('[1e308]')).toBe('fine');
  expect(fault('{"a":')).toBe('invalid_request');
  expect(fault('nope')).toBe('invalid_request');
  expect(fault(Buffer.from([0x22, 0xc0, 0xaf, 0x22]))).toBe('invalid_request');
  expect(fault(Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]))).toBe('invalid_request');
});

test('a chunked body is cut off at its limit', async () => {
  const url = await reader((request) => readBytes(request, 100));
  const chunk = `a0\r\n${'x'.repeat(160)}\r\n`;
  const answer = await rawHttp(
    url,
    `POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${chunk.repeat(3)}`,
  );
  expect(JSON.parse(answer.body.split('\r\n').find((line) => line.startsWith('{')) ?? answer.body)).toMatchObject({
    kind: 'payload_too_large',
  });
});

test('a body of another kind is refused, an empty one is nothing', async () => {
  const url = await reader((request) => readJson(request));
  const post = async (body: string, type: string) =>
    (await fetch(url, { method: 'POST', body, headers: { 'content-type': type } })).json();
  expect(await post('{"a":1}', 'application/json')).toEqual({ value: { a: 1 } });
  expect(await post('{"a":1}', 'application/vnd.x+json; charset=utf-8')).toEqual({ value: { a: 1 } });
  expect(await post('a=1', 'application/x-www-form-urlencoded')).toMatchObject({
    kind: 'invalid_request',
    param: 'content-type',
  });
  expect(await post('', 'application/json')).toEqual({});
});

test('one bearer token, or none', async () => {
  const url = await reader((request) => bearerOf(request) ?? null);
  const send = async (...lines: string[]) => {
    const head = ['GET / HTTP/1.1', 'Host: x', 'Connection: close', ...lines].join('\r\n');
    const { body } = await rawHttp(url, `${head}\r\n\r\n`);
    return JSON.parse(body.split('\r\n').find((line) => line.startsWith('{')) ?? body);
  };
  expect(await send()).toEqual({ value: null });
  expect(await send('Authorization: Bearer abc.def')).toEqual({ value: 'abc.def' });
  expect(await send('authorization: bearer abc')).toEqual({ value: 'abc' });
  for (const lines of [
    ['Authorization: Basic abc'],
    ['Authorization: Bearer'],
    ['Authorization: Bearer a b'],
    ['Authorization: Bearer a, Bearer b'],
    ['Authorization: Bearer good', 'Authorization: Bearer good'],
  ]) {
    expect(await send(...lines), lines.join()).toMatchObject({ kind: 'unauthenticated' });
  }
});
