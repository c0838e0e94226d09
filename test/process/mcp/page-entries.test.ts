/** The entries for a running gateway that docs/mcp.md tells clients to have, each used as it stands, with a key made as the page says. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openLegacyClient, outcome } from '../../support/mcp/one-server.ts';
import type { Loose } from '../../support/mcp/upstream.ts';
import { serving } from '../../support/process/served.ts';

const ROOT = join(import.meta.dirname, '../../..');
const GATEWAY = 'http://127.0.0.1:4319';

test('each client’s entry leads to the tools, at the common address and at one server’s, and to the metrics the page names', async () => {
  const page = await readFile(join(ROOT, 'docs/mcp.md'), 'utf8');
  const entries = [...page.matchAll(/\| `("gateway": \{.*\})` +\|/g)].map(([, entry]) =>
    addressed(JSON.parse(`{${entry}}`).gateway),
  );
  expect(entries).toHaveLength(4);
  const [row] = [
    ...page.matchAll(/\| any other +\| URL `([^`]+)`, or `([^`]+)` for one server +\| header `([^`]+)` +\|/g),
  ];
  const [, url = '', one = '', header = ''] = row ?? [];
  const [name = '', value = ''] = header.split(': ');
  entries.push(
    { url, headers: { [name]: value } },
    { url: `${GATEWAY}${one.replace('NAME', 'box')}`, headers: { [name]: value } },
  );

  const at = await serving();
  onTestFinished(() => at.stop().then(() => undefined));
  const [, made = ''] = /^tollbridge keys create (claude --for mcp-client)$/m.exec(page) ?? [];
  const [who = '', ...options] = made.split(' ');
  const key = await at.key(who, ...options);
  for (const { url: said, headers } of entries) {
    const address = said.replace(GATEWAY, at.url);
    const bearer = Object.fromEntries(
      Object.entries<string>(headers).map(([each, text]) => [each.toLowerCase(), text.replace('KEY', key)]),
    );
    const client = await openLegacyClient(address, {}, { headers: bearer });
    const { tools } = outcome(await client.request('tools/list')).result;
    const echo = said.endsWith('/box') ? 'echo' : 'box__echo';
    expect(tools.map((tool: Loose) => tool.name)).toContain(echo);
    const called = outcome(await client.request('tools/call', { name: echo, arguments: { text: 'hi' } })).result;
    expect(called.isError).toBeUndefined();
  }
  const metrics = (await at.send('/metrics')).text;
  const named = [...page.matchAll(/`(tollbridge_\w+)`/g)].map(([, metric]) => metric);
  expect(named.length).toBeGreaterThan(4);
  for (const metric of named) expect(metrics).toContain(`# TYPE ${metric} `);
  expect(await at.violations()).toEqual([]);
});

/** A command that connects a client to an address sends the headers it is given, with its variables in them. */
function addressed({ url, headers, args = [], env = {} }: Loose): { url: string; headers: Record<string, string> } {
  if (url !== undefined) return { url, headers };
  const [name = '', value = ''] = String(args[args.indexOf('--header') + 1]).split(':');
  const resolved = value.replace(/\$\{(\w+)\}/g, (_, variable: string) => env[variable] ?? '');
  return { url: args.find((word: string) => word.startsWith('http')), headers: { [name]: resolved } };
}
