/**
 * How long one call at the default limits holds the event loop at most, while all other calls wait: texts that are hard to look
 * through, as arguments and as a result. Against the time that parsing and spelling the same bytes once takes, which nothing can avoid.
 */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export const name = 'stall';

/** The most that a policy may have. */
const MOST_RULES = 500;
const SIZE = 3.5 * 1024 * 1024;
const REVISION = '2026-07-28';
const UNITS = ['a', 'http://user:pass@host/path?token=abcdef&x=1 ', '"a":"\\', '/a/../', 'echo hi; ', '$('];

interface Stalled {
  /** The longest hold of the event loop since the last look, in milliseconds: by the clock, and of that on a core. */
  held(): Promise<{ readonly clock: number; readonly cpu: number }>;
  call(text: string): Promise<{ readonly body: string; readonly answer: string }>;
  /** Other rules come into force. */
  reload(): Promise<void>;
}

async function withGateway<T>(rules: number, use: (gateway: Stalled) => Promise<T>): Promise<T> {
  const at = (file: string) => fileURLToPath(new URL(file, import.meta.url));
  const args = [at('../stall/gateway.js'), String(rules), process.execPath, at('../stall/server.js')];
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async () => String((await lines.next()).value);
  const say = async (word: string) => {
    child.stdin.write(`${word}\n`);
    return await next();
  };
  try {
    const [url = '', token = ''] = (await next()).split(' ');
    const call = async (text: string) => {
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: params(text) });
      const answer = await (await fetch(`${url}/mcp/box`, { method: 'POST', headers: headers(token), body })).text();
      if (!answer.includes('"result"')) throw new Error(`the call was not answered: ${answer.slice(0, 200)}`);
      return { body, answer };
    };
    return await use({
      async held() {
        const [clock, cpu] = (await say('stalled')).split(' ').map(Number) as [number, number];
        return { clock, cpu };
      },
      call,
      async reload() {
        const word = `generation ${await say('rules')}`;
        while (!(await call(word)).answer.includes('isError')) await new Promise((resolve) => setTimeout(resolve, 50));
      },
    });
  } finally {
    child.kill('SIGTERM');
    await new Promise((resolve) => child.once('exit', resolve));
  }
}

export async function run(): Promise<{ bench: string; ratio: number; against: string }[]> {
  return [await withGateway(1, hardTexts), await withGateway(MOST_RULES, mostRules)];
}

async function hardTexts({ held, call }: Stalled) {
  for (const unit of UNITS) await call(unit);
  await held();
  let [ours, theirs, longest, cpu] = [0, 0, 0, 0];
  for (const unit of UNITS) {
    const { body } = await call(unit.repeat(SIZE / (JSON.stringify(unit).length - 2)));
    const began = performance.now();
    JSON.stringify(JSON.parse(body));
    theirs += performance.now() - began;
    const stalled = await held();
    ours += stalled.clock;
    longest = Math.max(longest, stalled.clock);
    cpu = Math.max(cpu, stalled.cpu);
  }
  const against =
    'parsing and spelling the same 3.5 MiB once; the longest hold of the event loop for each of six texts';
  const figures = {
    longest_ms: longest,
    longest_cpu_ms: cpu,
    ours_ms: ours / UNITS.length,
    theirs_ms: theirs / UNITS.length,
  };
  return { bench: name, ratio: ours / theirs, against, ...figures };
}

/** As many rules as there may be: the first call of all, one like it, the rules exchanged, and the first call after that. */
async function mostRules({ held, call, reload }: Stalled) {
  await held();
  await call('first');
  const cold = await held();
  await call('second');
  const warm = await held();
  await reload();
  const reloaded = await held();
  await call('third');
  const after = await held();
  const longest = Math.max(cold.clock, warm.clock, reloaded.clock, after.clock);
  const against = `100 ms, which no step may take; ${MOST_RULES} rules that all look at the call`;
  return { bench: `${name}-rules`, ratio: longest / 100, against, cold, warm, reloaded, after };
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
