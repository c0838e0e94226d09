/**
 * A tool server of the legacy era over standard input and output that a test steers by its arguments:
 * `steered-server.mjs <journal> [--slow <file>] [--hang] [--crash] [--ignore] [--asks] [--announces] [--stays]`. It appends a line to the journal when it starts, and
 * one for each request. `--slow` answers nothing until the file exists; `--ignore` ignores methods it does not know; `--asks` asks
 * for roots when the session is open, and answers calls with them; `--announces` declares that changed prompts are announced; `--stays`
 * ignores the end of its input and SIGTERM.
 */
import { appendFileSync, existsSync, watch } from 'node:fs';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';

const [, , journal, ...flags] = process.argv;
const note = (line) => appendFileSync(journal, `${JSON.stringify(line)}\n`);
const flag = (name) => flags.includes(name);
const gate = flag('--slow') ? flags[flags.indexOf('--slow') + 1] : undefined;
note({ started: process.pid, env: process.env, cwd: process.cwd() });
if (flag('--crash')) process.exit(3);
if (flag('--stays')) {
  process.on('SIGTERM', () => note({ ignored: 'SIGTERM' }));
  setInterval(() => {}, 60_000);
}

const open = new Promise((resolve) => {
  if (gate === undefined || existsSync(gate)) return resolve();
  const seen = watch(dirname(gate), () => {
    if (!existsSync(gate)) return;
    seen.close();
    resolve();
  });
});
let rooted = () => {};
const roots = new Promise((resolve) => {
  rooted = resolve;
});
const say = (frame) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...frame })}\n`);
const tools = ['echo', 'grow'];
const text = (said) => ({ content: [{ type: 'text', text: said }] });

function answer({ method, params = {} }) {
  if (method === 'initialize') {
    const capabilities = { tools: { listChanged: true }, prompts: { listChanged: flag('--announces') } };
    return { protocolVersion: params.protocolVersion, capabilities, serverInfo: { name: 'steered', version: '1' } };
  }
  if (method === 'ping') return {};
  if (method === 'tools/list') return { tools: tools.map((name) => ({ name, inputSchema: { type: 'object' } })) };
  if (method === 'prompts/list') return { prompts: [{ name: 'hello' }] };
  if (method === 'tools/call' && params.name === 'grow') {
    tools.push('grown');
    say({ method: 'notifications/tools/list_changed' });
    return text('grown');
  }
  if (method === 'tools/call' && tools.includes(params.name)) return text(`${params.name} by ${process.pid}`);
  return undefined;
}

for await (const line of createInterface({ input: process.stdin })) {
  const frame = JSON.parse(line);
  note({ method: frame.method, params: frame.params });
  if (flag('--asks') && frame.method === 'notifications/initialized') say({ id: 'roots', method: 'roots/list' });
  if (frame.method === undefined) rooted(frame.result);
  if (flag('--hang') || frame.id === undefined || frame.method === undefined) continue;
  await open;
  if (flag('--asks') && frame.method === 'tools/call') {
    void roots.then((found) => say({ id: frame.id, result: text(JSON.stringify(found)) }));
    continue;
  }
  const result = answer(frame);
  if (result) say({ id: frame.id, result });
  else if (frame.method === 'tools/call') {
    say({
      id: frame.id,
      error: { code: -32602, message: `no tool is called ${frame.params?.name}`, data: { its: 'own' } },
    });
  } else if (!flag('--ignore')) say({ id: frame.id, error: { code: -32601, message: 'unknown' } });
}
