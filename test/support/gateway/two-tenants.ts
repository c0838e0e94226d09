/** Two tenants, one of everything that belongs to the first, and the words that give nothing away. */
import { expect } from 'vitest';
import type { Actor } from '../../../src/model/actions.ts';
import type { CommandBody } from '../../../src/model/commands.ts';
import { asFault, type Fault } from '../../../src/model/faults.ts';
import type { JsonObject } from '../../../src/model/schema.ts';
import { scriptedAgent } from './agents.ts';
import { openTestGateway, type Room, says, type TestGateway } from './test-gateway.ts';
import { countingTools } from './tools.ts';

export const red: Actor = { id: 'rae', kind: 'person', tenant_id: 'red', scopes: ['*'] };
export const blue: Actor = { id: 'bea', kind: 'person', tenant_id: 'blue', scopes: ['*'] };
export const file = { kind: 'file', mime_type: 'text/plain', visibility: 'public' } as const;
export const hello = says('hello') as unknown as CommandBody<'message.append'>['message'];

/** One of everything in red's workspace, by the name of its object. */
export interface Belongings {
  readonly t: TestGateway;
  readonly room: Room;
  readonly ids: Readonly<Record<string, string>>;
}

export async function everything(): Promise<Belongings> {
  const agent = scriptedAgent(async (sink) => {
    await sink.artifact({ ...file, bytes: Buffer.from('red bytes') });
    return undefined;
  });
  const tools = countingTools({ send: { effect: 'send' }, look: { effect: 'read' } });
  const t = await openTestGateway({ agents: [agent], tools: [tools] });
  const by = { actor: red };
  const room = await t.room({ actor: red, persona: {} });
  const make = async (object: CommandBody<'resource.create'>['object'], body: JsonObject) =>
    (await t.send('resource.create', { object, body }, by)).resource.id;
  const ended = await room.task();
  await t.until(ended.id);
  const open = await room.task({ agent: 'none' });
  const action = { kind: 'tool', tool: 'send', effect: 'send' } as const;
  const { details } = await t.send('action.propose', { task_id: open.id, action, wait_ms: 0 }, by);
  const message = await t.send('message.append', { session_id: room.session, message: hello }, by);
  const branch = await t.send('branch.create', { session_id: room.session, kind: 'session', base_ref: 'main' }, by);
  const [receipt] = await t.receipts(ended.id);
  const [artifact] = await t.runtime.store.list({ object: 'artifact', where: { task_id: ended.id } });
  const [outcome] = await t.runtime.store.list({ object: 'outcome', where: { task_id: ended.id } });
  const [event] = await t.events(ended.id);
  return {
    t,
    room,
    ids: {
      workspace: room.workspace,
      session: room.session,
      persona: room.persona!,
      task: open.id,
      ended: ended.id,
      ask: String(details?.ask_id),
      message: message.resource.id,
      branch: branch.resource.id,
      receipt: receipt!.receipt_id,
      artifact: artifact!.id,
      outcome: outcome!.id,
      event: event!.id,
      quota: await make('quota', { scope: 'workspace', limits: { tasks: 100 } }),
      skill: await make('skill', { name: 's', description: '' }),
      vault: await make('vault', { provider: 'env', capabilities: [] }),
      memory: await make('memory', { scope: 'session', owner_id: room.session, content: 'red', provenance: {} }),
      connector: await make('connector', { workspace_id: room.workspace, provider: 'x', event_kinds: [] }),
    },
  };
}

export async function faultOf(work: Promise<unknown>): Promise<Fault> {
  return await work.then(
    () => {
      throw new Error('was let through');
    },
    (cause) => asFault(cause),
  );
}

/** What someone hears about a thing that is there and about one that never was, with the ids taken out. */
export function sameWords(hidden: Fault, absent: Fault, id: string, none: string): void {
  expect(hidden.kind).toBe('not_found');
  expect({ kind: hidden.kind, message: hidden.message.replaceAll(id, 'ID'), details: hidden.details }).toEqual({
    kind: absent.kind,
    message: absent.message.replaceAll(none, 'ID'),
    details: absent.details,
  });
}
