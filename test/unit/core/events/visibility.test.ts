/** What a reader is shown: the public view unless a door asks for more and the credential may have it. */
import { describe, expect, test } from 'vitest';
import type { Actor } from '../../../../src/model/actions.ts';
import type { CoreEvent } from '../../../../src/model/events.ts';
import type { Artifact, Memory, Message, Task } from '../../../../src/model/resources.ts';
import type { Row } from '../../../../src/ports/index.ts';
import { ana } from '../../../support/gateway/actors.ts';
import { refusalOf } from '../../../support/gateway/faults.ts';
import { openTestGateway, REAL_TIME, type TestGateway } from '../../../support/gateway/test-gateway.ts';
import { scripted, text } from '../../../support/tasks/script.ts';

const part = (visibility: string, said: string) => ({ type: 'text', text: said, visibility });
const message = {
  role: 'user',
  parts: [part('public', 'open Lyon'), part('internal', 'inside Oslo'), part('receipt_only', 'sealed Riga')],
};
const inside: Actor = { ...ana, sees: 'internal' };
const SCOPES = [
  'sessions:read',
  'tasks:read',
  'tasks:write',
  'events:read',
  'artifacts:read',
  'memories:read',
  'others:read',
];
/** Its door asks, and its credential has no right to it. */
const asking: Actor = { ...ana, id: 'key', kind: 'service', scopes: SCOPES, sees: 'internal' };

async function everything(gateway: TestGateway, actor: Actor, session: string, task: string): Promise<string> {
  const { bridge } = gateway.runtime;
  const found: unknown[] = [await bridge.view(actor, 'task', task)];
  for (const object of ['message', 'task', 'artifact', 'outcome']) {
    found.push(
      await bridge.list(actor, { object, where: object === 'outcome' ? { task_id: task } : { session_id: session } }),
    );
  }
  for await (const event of bridge.events(actor, { stream: { of: 'session', id: session } })) found.push(event);
  const stop = new AbortController();
  for await (const event of bridge.follow(actor, { stream: { of: 'task', id: task } }, stop.signal)) {
    found.push(event, await bridge.view(actor, 'event', event.id));
    if (event.event === 'task.completed') stop.abort();
  }
  return JSON.stringify(found);
}

async function story() {
  const agent = scripted('one', async ({ sink }) => {
    await sink.emit({
      event: 'agent.message',
      payload: { message: { role: 'assistant', parts: [part('internal', 'thought Oslo')] } as never },
    });
    await sink.artifact({
      kind: 'log',
      mime_type: 'text/plain',
      name: 'Oslo.log',
      visibility: 'internal',
      bytes: Buffer.from('Oslo'),
    });
    await sink.artifact({
      kind: 'log',
      mime_type: 'text/plain',
      name: 'Riga.log',
      visibility: 'receipt_only',
      bytes: Buffer.from('Riga'),
    });
    await sink.emit(text('answer'));
  });
  const gateway = await openTestGateway({ ...REAL_TIME, agents: [agent] });
  const session = await gateway.session();
  await gateway.send('message.append', { session_id: session, message: message as never });
  const { id } = await gateway.submit(session, { input: message });
  await gateway.until(id);
  return { gateway, session, task: id };
}

describe('what is shown', () => {
  test('public content to a caller that asks for no more, whatever its scopes; internal content to one that asks for it and may see it', async () => {
    const { gateway, session, task } = await story();
    for (const actor of [ana, asking, { ...ana, kind: 'system' as const }]) {
      const shown = await everything(gateway, actor, session, task);
      expect(shown).toContain('Lyon');
      expect(shown).not.toContain('Oslo');
      expect(shown).not.toContain('Riga');
      expect(shown).toContain('"type":"redacted"');
    }
    const shown = await everything(gateway, inside, session, task);
    expect(shown).toContain('inside Oslo');
    expect(shown).toContain('thought Oslo');
    expect(shown).not.toContain('sealed Riga');
    const events: CoreEvent[] = [];
    for await (const event of gateway.runtime.bridge.events(inside, { stream: { of: 'session', id: session } }))
      events.push(event);
    expect(JSON.stringify(events)).not.toContain('Riga');
  });

  test('what a command answers is shown like everything else', async () => {
    const { gateway, session, task } = await story();
    const replay = async (actor: Actor) =>
      JSON.stringify(await gateway.send('task.replay', { task_id: task }, { actor }));
    expect(await replay(asking)).not.toContain('Oslo');
    await gateway.runtime.idle();
    const { resource } = await gateway.send('message.append', { session_id: session, message: message as never });
    expect((resource as Message & Row).parts.map(({ type }) => type)).toEqual(['text', 'redacted', 'redacted']);
  });

  test('bytes: internal ones take internal:read, those for receipts receipts:read', async () => {
    const { gateway, task } = await story();
    const { data } = await gateway.runtime.bridge.list<Artifact & Row>(inside, {
      object: 'artifact',
      where: { task_id: task },
    });
    const read = (actor: Actor, visibility: string) => {
      const { id } = data.find((file) => file.visibility === visibility && file.metadata.spilled !== true)!;
      return gateway.runtime.bridge.bytes(actor, id).then(
        (bytes) => Buffer.from(bytes).toString(),
        (cause) => cause.kind,
      );
    };
    expect(await read(inside, 'internal')).toContain('Oslo');
    expect(await read(inside, 'receipt_only')).toContain('Riga');
    expect(await read(asking, 'internal')).toBe('permission_denied');
    expect(await read(asking, 'receipt_only')).toBe('permission_denied');
  });

  test('a memory keeps its content from those it is not for', async () => {
    const gateway = await openTestGateway(REAL_TIME);
    const workspace = await gateway.workspace();
    const ids: string[] = [];
    for (const [visibility, content] of [
      ['public', 'open Lyon'],
      ['internal', 'inside Oslo'],
      ['receipt_only', 'sealed Riga'],
    ]) {
      const body = { scope: 'workspace', owner_id: workspace, content, visibility, provenance: {} };
      ids.push((await gateway.send('resource.create', { object: 'memory', body: body as never })).resource.id);
    }
    const contents = async (actor: Actor) =>
      await Promise.all(
        ids.map(async (id) => (await gateway.runtime.bridge.view<Memory & Row>(actor, 'memory', id)).content),
      );
    const withheld = { redacted: true };
    expect(await contents(ana)).toEqual(['open Lyon', withheld, withheld]);
    expect(await contents(asking)).toEqual(['open Lyon', withheld, withheld]);
    expect(await contents(inside)).toEqual(['open Lyon', 'inside Oslo', 'sealed Riga']);
    const events: CoreEvent[] = [];
    for await (const event of gateway.runtime.bridge.events(inside, { stream: { of: 'workspace', id: workspace } }))
      events.push(event);
    expect(JSON.stringify(events)).toContain('inside Oslo');
    expect(JSON.stringify(events)).not.toContain('sealed Riga');
  });
});

describe('words nobody knows', () => {
  test.each(['receipt-only', 'Internal', '', 7, null, ['public'], {}])(
    '%j is refused from callers and from agents',
    async (word) => {
      const faults: unknown[] = [];
      const tried = async (work: Promise<unknown>) =>
        faults.push(
          await work.then(
            () => 'accepted',
            (cause) => cause.kind,
          ),
        );
      const parts = [{ type: 'text', text: 'Kyiv', visibility: word }];
      const agent = scripted('one', async ({ sink }) => {
        await tried(sink.emit({ event: 'agent.message', payload: { message: { role: 'assistant', parts } as never } }));
        await tried(
          sink.emit({ event: 'artifact.created', payload: { artifact: { kind: 'file', visibility: word } as never } }),
        );
        if (word !== null)
          await tried(
            sink.artifact({ kind: 'file', mime_type: 'a/b', visibility: word as never, bytes: Buffer.from('x') }),
          );
        await sink.emit(text('done'));
      });
      const gateway = await openTestGateway({ ...REAL_TIME, agents: [agent] });
      const session = await gateway.session();
      for (const input of [
        { role: 'user', parts },
        { parts },
        { role: 'user', parts: [{ type: 'x.y', visibility: word }] },
      ]) {
        expect(
          await refusalOf(gateway.send('task.submit', { session_id: session, input: input as never })),
          JSON.stringify(input),
        ).toMatchObject({
          kind: 'invalid_request',
          param: expect.stringContaining('/input/'),
        });
      }
      await gateway.until((await gateway.submit(session)).id);
      expect(
        faults.every((fault) => fault === 'invalid_request'),
        JSON.stringify(faults),
      ).toBe(true);
      expect(JSON.stringify(await gateway.messages(session))).not.toContain('Kyiv');
    },
  );

  test('an input that only looks a little like a message is data', async () => {
    const gateway = await openTestGateway({ ...REAL_TIME, agents: [scripted('one', async () => {})] });
    const session = await gateway.session();
    for (const input of [{ parts: [1, 2] }, { parts: ['bolt'] }, { parts: {} }, { order: { parts: [] } }]) {
      const { resource } = await gateway.send('task.submit', { session_id: session, input: input as never });
      expect((resource as Task & Row).input).toEqual(input);
    }
  });
});
