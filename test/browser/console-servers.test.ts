/** Tool servers that hang or crash are named where operators look: on the catalog page with the reason, and in the metrics. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openConsole, seriousIssues } from '../support/console/console.ts';
import { eventually } from '../support/eventually.ts';

const STEERED = join(import.meta.dirname, '../support/upstreams/steered-server.mjs');

test('a server that hangs is starting, one that crashes is unavailable with its reason, and one that answers is not named', async () => {
  const at = await openConsole('', async (dir) => {
    const steered = (name: string, ...flags: string[]) => ({
      mcp: { command: [process.execPath, STEERED, join(dir, `${name}.journal`), ...flags] },
    });
    const tools = { one: steered('one'), crashes: steered('crashes', '--crash'), hangs: steered('hangs', '--hang') };
    return `tools: ${JSON.stringify(tools)}\n`;
  });
  const upLines = async () => {
    const headers = { authorization: `Bearer ${at.gateway.token}` };
    const metrics = await (await fetch(`${at.gateway.url}/metrics`, { headers })).text();
    return metrics.split('\n').filter((line) => line.startsWith('tollbridge_tool_server_up'));
  };
  const settled = ['one"} 1', 'crashes"} 0', 'hangs"} 0'].map((end) => `tollbridge_tool_server_up{server="${end}`);
  await eventually(async () => {
    const lines = await upLines();
    return settled.every((line) => lines.includes(line));
  }, 'the metrics to say which servers answer');

  const page = await at.page();
  await page.goto(`${at.gateway.url}/catalog`);
  const card = page.locator('section', { has: page.getByRole('heading', { name: 'Tool servers' }) });
  const said = (name: string) => card.locator('p', { hasText: name });
  await said('crashes').getByText('unavailable', { exact: true }).waitFor();
  expect(await said('crashes').textContent()).toMatch(/^crashes unavailable .*(3|ended|exited)/);
  expect(await said('hangs').textContent()).toBe('hangs starting it has not answered yet');
  expect(await card.getByText('ready').count()).toBe(0);
  expect(await seriousIssues(page)).toEqual([]);
});
