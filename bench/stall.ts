/**
 * How long one call at the default limits holds the event loop at most, while everybody else waits: texts that are hard to look
 * through, as arguments and as a result. Against the time that parsing and spelling the same bytes once takes, which nothing can avoid.
 */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export const name = 'stall';

const SIZE = 3.5 * 1024 * 1024;
const REVISION = '2026-07-28';
const UNITS = ['a', 'http://user:pass@host/path?token=abcdef&x=1 ', '"a":"\\', '/a/../', 'echo hi; ', '$('];

export async function run(): Promise<{ bench: string; ratio: number; against: string }[]> {
  const at = (file: string) => fileURLToPath(new URL(file, import.meta.url));
  const child = spawn(process.execPath, [at('./stall/gateway.js'), process.execPath, at('./stall/server.js')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async () => String((await lines.next()).value);
  const stalled = async () => {
    child.stdin.write('stalled\n');
    return Number(await next());
  };
  try {
    const [url = '', token = ''] = (await next()).split(' ');
    const call = async (text: string) => {
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: params(text) });
      const answer = await fetch(`${url}/mcp/box`, { method: 'POST', headers: headers(token), body });
      if (!(await answer.text()).includes('"result"')) throw new Error('the call was not answered');
      return body;
    };
    for (const unit of UNITS) await call(unit);
    await stalled();
    let [ours, theirs, longest] = [0, 0, 0];
    for (const unit of UNITS) {
      const body = await call(unit.repeat(SIZE / (JSON.stringify(unit).length - 2)));
      const began = performance.now();
      JSON.stringify(JSON.parse(body));
      theirs += performance.now() - began;
      const held = await stalled();
      ours += held;
      longest = Math.max(longest, held);
    }
    const against =
      'parsing and spelling the same 3.5 MiB once; the longest hold of the event loop for each of six texts';
    const figures = { longest_ms: longest, ours_ms: ours / UNITS.length, theirs_ms: theirs / UNITS.length };
    return [{ bench: name, ratio: ours / theirs, against, ...figures }];
  } finally {
    child.kill('SIGTERM');
    await new Promise((resolve) => child.once('exit', resolve));
  }
}

function params(text: string): object {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': REVISION,
    'io.modelcontextprotocol/clientCapabilities': {},
    'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
  };
  return { name: 'back', arguments: { text }, _meta: meta };
}

function headers(token: string): Record<string, string> {
  return {
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': REVISION,
    'mcp-method': 'tools/call',
    'mcp-name': 'back',
  };
}
