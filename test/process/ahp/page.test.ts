/** The AHP page as the author of an agent reads it: its example is sent with a key as the page makes it, and answered as it says. */
import { expect, test } from 'vitest';
import { exampleCall, gatewayWithKey, readPage } from '../../support/process/example-call.ts';

test('the example is decided as the page says', async () => {
  const page = await readPage('ahp.md');
  const { url, token } = await gatewayWithKey('ahp-agent');
  const { path, headers, body } = exampleCall(page);
  expect(headers).toEqual({ 'X-API-Key': '$KEY', 'Content-Type': 'application/json' });
  const sent = { ...headers, 'X-API-Key': token };
  const answer = await fetch(`${url}${path}`, { method: 'POST', headers: sent, body });
  const [, shown = ''] = /```json\n([\s\S]*?)```/.exec(page) ?? [];
  expect(await answer.json()).toEqual(JSON.parse(shown));
});
