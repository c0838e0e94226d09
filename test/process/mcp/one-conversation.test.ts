/** The servers of one client are one conversation: content that one of them returned is held against calls of the others. */
import { expect, onTestFinished, test } from 'vitest';
import { echo, openUpstream } from '../../support/mcp/upstream.ts';
import { aGateway, startSpeaking } from '../../support/process/stdio-process.ts';

test('a taint follows the client from one server to the next; another client starts without it', async () => {
  const upstream = await openUpstream({ tools: { echo } });
  onTestFinished(() => upstream.close());
  const { data, config } = await aGateway(`rules:
  - { id: all, when: {}, then: allow }
  - { id: nothing-after-reading, when: { server: second, attributes: { tainted: true } }, then: block }
`);
  const open = async (name: string, ownClient = false) => {
    const words = ['--data', data, '--config', config, 'mcp', '--name', name, '--url', upstream.url];
    const { end, child, exited } = startSpeaking(words, { ownClient });
    const clientInfo = { name: 'a-client', version: '1' };
    await end.ask('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo });
    end.notify('notifications/initialized', {});
    onTestFinished(async () => {
      child.stdin.end();
      await exited;
    });
    return async () => (await end.ask('tools/call', { name: 'echo', arguments: { text: 'hi' } })).result?.isError;
  };
  const [first, second, other] = await Promise.all([open('first'), open('second'), open('second', true)]);
  expect(await first()).toBeUndefined();
  expect(await second()).toBe(true);
  expect(await other()).toBeUndefined();
});
