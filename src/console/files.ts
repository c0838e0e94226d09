/** The built web app, read once into memory: a handful of files whose names hold a hash of their content, and one page. */
import { readdir, readFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { brotliCompress, gzip } from 'node:zlib';
import { own } from '../model/values/own.ts';
import { PAGE_HEADERS } from './headers.ts';

type Encoding = 'br' | 'gzip';
interface BuiltFile {
  readonly type: string;
  readonly plain: Buffer;
  /** Compressed when it is first asked for: most gateways start without anybody looking at the console. */
  encoded(encoding: Encoding): Promise<Buffer>;
}

export interface BuiltApp {
  /** Undefined when there is no such file. */
  asset(name: string): BuiltFile | undefined;
  readonly page: BuiltFile | undefined;
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** `dist/console`, seen from the compiled program, from the sources that tests run, and from the compiled benches. */
const LOCATIONS = ['../../console/', '../../dist/console/', '../../../dist/console/'];

export async function readBuiltApp(): Promise<BuiltApp> {
  for (const location of LOCATIONS) {
    const dir = fileURLToPath(new URL(location, import.meta.url));
    const page = await fileIn(dir, 'index.html');
    if (!page) continue;
    const assets = join(dir, 'assets');
    const files = new Map<string, BuiltFile>();
    for (const name of await readdir(assets)) {
      const file = await fileIn(assets, name);
      if (file) files.set(name, file);
    }
    return { page, asset: (name) => files.get(name) };
  }
  return { page: undefined, asset: () => undefined };
}

async function fileIn(dir: string, name: string): Promise<BuiltFile | undefined> {
  const type = own(TYPES, extname(name));
  const plain = type && (await readFile(join(dir, name)).catch(() => undefined));
  if (!plain) return undefined;
  const made = new Map<Encoding, Promise<Buffer>>();
  return {
    type,
    plain,
    encoded(encoding) {
      const known = made.get(encoding) ?? COMPRESS[encoding](plain);
      made.set(encoding, known);
      return known;
    },
  };
}

const COMPRESS: Readonly<Record<Encoding, (plain: Buffer) => Promise<Buffer>>> = {
  br: promisify(brotliCompress),
  gzip: promisify(gzip),
};

/** An asset's name changes with its content, so it may be kept; the page names the assets, so it may not. */
export async function sendFile(
  request: IncomingMessage,
  response: ServerResponse,
  file: BuiltFile,
  kept: 'kept' | 'not kept',
): Promise<void> {
  const accepted = request.headers['accept-encoding'] ?? '';
  const encoding = /\bbr\b/.test(accepted) ? 'br' : /\bgzip\b/.test(accepted) ? 'gzip' : undefined;
  const body = encoding ? await file.encoded(encoding) : file.plain;
  response.writeHead(200, {
    ...PAGE_HEADERS,
    'content-type': file.type,
    'content-length': body.length,
    'cache-control': kept === 'kept' ? 'public, max-age=31536000, immutable' : 'no-store',
    vary: 'accept-encoding',
    ...(encoding && { 'content-encoding': encoding }),
  });
  response.end(request.method === 'HEAD' ? undefined : body);
}
