/** An editor in front of agents that do not speak its protocol: what it sees is the same, whichever agent does the work and over whichever protocol. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { openApiKeys } from '../../../src/auth/api-keys.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { type Gateway, startGateway } from '../../../src/runtime/gateway.ts';
import { type Editor, editorKey, type Frame, speakTo } from '../../support/acp/client.ts';
import { configIn } from '../../support/process/config-in.ts';

async function gateway(yaml: object): Promise<Gateway & { readonly dir: string }> {
  const dir = await mkdtemp(join(tmpdir(), 'tb-over-'));
  await writeFile(join(dir, 'tollbridge.yaml'), JSON.stringify(yaml));
  const open = await startGateway(await configIn(dir, { data: join(dir, 'data'), port: 0 }));
  onTestFinished(async () => {
    await open.close();
    await rm(dir, { recursive: true, force: true });
  });
  return { ...open, dir };
}

const RULES = [{ id: 'mail', when: { tool: 'send_mail' }, then: 'ask', say: 'a person decides' }];
const FAR: Readonly<Record<string, (url: string) => object>> = {
  'the built-in agent': () => ({ rules: RULES }),
  'a peer of A2A': (url) => ({ agents: { far: { a2a: { url: `${url}/a2a/demo`, secret: 'far' } } } }),
  'a harness of the Agents Protocol': (url) => ({ agents: { far: { harn: { url, secret: 'far' } } } }),
  'a harness of the runs API': (url) => ({ agents: { far: { runs: { url, secret: 'far-pair' } } } }),
};

async function inFrontOf(who: string): Promise<Gateway & { readonly dir: string }> {
  const far = await gateway({ rules: RULES });
  // A gateway that hands on the answers of its own people to the work it started there.
  const actor = { id: 'near', kind: 'service' as const, scopes: ['*', 'approvals:own'] };
  const { key } = await openApiKeys(join(far.dir, 'data'), systemClock).create({ name: 'near', actor });
  vi.stubEnv('TOLLBRIDGE_SECRET_far', key);
  vi.stubEnv('TOLLBRIDGE_SECRET_far-pair', key.replace(/^(tbk_[0-9a-f]+)_/, '$1:'));
  onTestFinished(() => void vi.unstubAllEnvs());
  return await gateway(FAR[who]?.(far.url) ?? {});
}

const words = (editor: Editor) =>
  editor
    .updates('agent_message_chunk')
    .map(({ content }: Frame) => content.text)
    .join('');
const dialog = ({ method }: Frame) => method === 'session/request_permission';

describe.each(Object.keys(FAR))('%s', { timeout: 60_000 }, (who) => {
  test('a conversation: words, a question that is answered here, a stop, and all of it again for someone who loads it', async () => {
    const near = await inFrontOf(who);
    const editor = await speakTo({ url: near.url, token: await editorKey(join(near.dir, 'data')) });
    const sessionId = await editor.session(near.dir);
    expect((await editor.prompt(sessionId, 'hello')).stopReason).toBe('end_turn');
    expect(words(editor)).toContain('Hello! I am the demo agent');

    const sending = editor.prompt(sessionId, 'send hi to bo');
    const question = await editor.next(dialog);
    editor.answer(question.id, { outcome: { outcome: 'selected', optionId: 'approve' } });
    expect((await sending).stopReason).toBe('end_turn');

    const refused = editor.prompt(sessionId, 'send no to bo');
    editor.answer((await editor.next(dialog)).id, { outcome: { outcome: 'selected', optionId: 'reject' } });
    // A no ends a run of that API; everywhere else the work goes on without what was refused.
    const ended = await refused.then(({ stopReason }: Frame) => stopReason).catch(({ data }: Frame) => data.code);
    expect(ended).toBe(who.includes('runs') ? 'rejected_by_signal' : 'end_turn');

    const waiting = editor.prompt(sessionId, 'ask which colour?');
    const form = await editor.next(({ method }) => method === 'elicitation/create');
    expect(form.params.message).toContain('which colour?');
    editor.answer(form.id, { action: 'accept', content: { answer: 'blue' } });
    expect((await waiting).stopReason).toBe('end_turn');

    const long = editor.prompt(sessionId, 'wait 10000');
    await expect
      .poll(async () => (await near.core.store.list({ object: 'task', where: { state: 'WORKING' } })).length)
      .toBe(1);
    editor.tell('session/cancel', { sessionId });
    expect((await long).stopReason).toBe('cancelled');

    const second = await speakTo(near);
    const { sessions } = await second.call('session/list', {});
    expect(sessions.map((each: Frame) => each.sessionId)).toEqual([sessionId]);
    await second.call('session/load', { sessionId, cwd: near.dir, mcpServers: [] });
    expect(second.updates('user_message_chunk').map(({ content }) => content.text)).toEqual([
      'hello',
      'send hi to bo',
      'send no to bo',
      'ask which colour?',
      'wait 10000',
    ]);
    expect(words(second)).toContain('Hello! I am the demo agent');
    await second.call('session/resume', { sessionId, cwd: near.dir, mcpServers: [] });
  });
});
