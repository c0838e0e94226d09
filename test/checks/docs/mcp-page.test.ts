/** What stands inside the lines of docs/mcp.md: rules and settings in backticks are read as the program reads them, with the defaults it has. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { adapters } from '../../../adapters/index.ts';
import { settingsOf, upstreamSettings } from '../../../adapters/mcp/config.ts';
import { loadPolicies } from '../../../src/policy/rules/load.ts';
import { configSchema } from '../../../src/runtime/config/schema.ts';

const page = await readFile(fileURLToPath(new URL('../../../docs/mcp.md', import.meta.url)), 'utf8');
const valid = new Ajv2020({ strict: false, allErrors: true }).compile(configSchema(adapters));
const text = page.replaceAll(/^```[\s\S]*?^```/gm, '');
const quoted = [...text.matchAll(/`([^`\n]+)`/g)].map(([, said = '']) => said);

test('every rule in a line is a rule', async () => {
  const rules = quoted.filter((said) => said.startsWith('{') && said.includes('then:'));
  expect(rules.length).toBeGreaterThan(1);
  const loaded = await loadPolicies({ rules: rules.map((said) => parse(said)), files: [] });
  expect(loaded).toBeDefined();
});

/** Where the page says that a section is under something else, that stands here. */
const UNDER_SERVER =
  /^(sign_in|effects|trusted|era|transport|start_timeout_ms|timeout_ms|longest_ms|share|max_children): /;

test('every setting in a line is one', () => {
  const doors = quoted.filter((said) => /^doors: /.test(said));
  const servers = quoted.filter((said) => UNDER_SERVER.test(said));
  expect([doors.length, servers.length].map((count) => count > 2)).toEqual([false, true]);
  for (const said of doors) expect([said, valid(parse(said))]).toEqual([said, true]);
  for (const said of servers) {
    const mcp = { ...(/^sign_in/.test(said) ? { url: 'https://x.example/mcp' } : { command: ['x'] }), ...parse(said) };
    expect([said, valid({ tools: { x: { mcp } } }), valid.errors]).toEqual([said, true, null]);
  }
});

test('the defaults are those of the program', () => {
  const { startMs, timeoutMs, longestMs, era } = upstreamSettings({ command: ['x'] });
  const rows = [...text.matchAll(/^\| `(\w+)` +\| (`?\w+`?) +\|/gm)].map(([, name, value]) => [name, value]);
  const said = new Map<unknown, unknown>();
  for (const [name, value] of rows) {
    // Two tables name some settings.
    if (said.has(name)) expect([name, said.get(name)]).toEqual([name, value]);
    said.set(name, value);
  }
  expect(Object.fromEntries(said)).toEqual({
    start_timeout_ms: String(startMs),
    timeout_ms: String(timeoutMs),
    longest_ms: String(longestMs),
    era: `\`${era}\``,
    transport: '`auto`',
  });
  expect(text).toContain(`\`doors.mcp.session_away_ms\` (${settingsOf({}).sessionAwayMs})`);
});
