/**
 * What every door owes its callers and core (`src/ports/doors.ts`): no work without a credential, errors in its own protocol, the public
 * view unless more is asked for, other tenants' work as absent as work that never was, one task per repeated request, and an end of
 * everything open when it is closed.
 */
import { describe, expect, test } from 'vitest';
import type { Actor } from '../../../src/model/actions.ts';
import type { AgentBackend } from '../../../src/ports/index.ts';
import { scriptedAgent, untilAborted } from '../../support/gateway/agents.ts';
import { type AllDoors, openAllDoors } from '../../support/gateway/all-doors.ts';

export interface Reply {
  /** 0 where the protocol runs over a socket that was opened. */
  readonly status: number;
  readonly body: string;
}

export interface DoorCase {
  /** Begins work, or proposes an act. The same key is the same request where the protocol can say so. */
  begin(at: AllDoors, token: string | undefined, key: string, text: string): Promise<Reply>;
  /** A request whose body is not what the protocol describes. */
  malformed(at: AllDoors, token: string): Promise<Reply>;
  /** Whether this is an error in the words of the protocol. */
  isError(reply: Reply): boolean;
  /** Everything the door shows of that work once it has ended. Absent: the protocol shows no work. */
  readonly read?: (at: AllDoors, token: string, begun: Reply) => Promise<string>;
  /** The protocol has a key for repeated requests. */
  readonly repeats?: true;
  /** Follows that work. Settles with a promise of the stream's end. Absent: the protocol has no streams. */
  readonly follow?: (at: AllDoors, token: string, begun: Reply) => Promise<{ readonly ended: Promise<unknown> }>;
}

const scopes = ['sessions:*', 'tasks:*', 'events:*', 'workspaces:*', 'artifacts:*', 'approvals:*', 'skills:*'];
const PEOPLE: Readonly<Record<string, Actor>> = {
  ana: { id: 'ana', kind: 'service', scopes },
  wile: { id: 'wile', kind: 'service', tenant_id: 'acme', scopes },
};
const SAID = { public: 'Lyon', internal: 'Oslo', receipt_only: 'Riga' } as const;

export function doorContract(name: string, door: DoorCase): void {
  describe(`door contract: ${name}`, () => {
    test.each([undefined, '', 'nobody', 'Ana'])('the credential %j is refused, and nothing begins', async (token) => {
      const at = await open();
      const reply = await door.begin(at, token, 'k1', 'go');
      expect([401, 403]).toContain(reply.status);
      expect(await begun(at)).toBe(0);
    });

    test('a malformed request is an error of the protocol, and nothing begins', async () => {
      const at = await open();
      const reply = await door.malformed(at, 'ana');
      expect(door.isError(reply), reply.body).toBe(true);
      expect(reply.status).toBeLessThan(500);
      expect(await begun(at)).toBe(0);
    });

    test('a request with a credential is decided and recorded', async () => {
      const at = await open();
      const reply = await door.begin(at, 'ana', 'k1', 'go');
      expect(door.isError(reply), reply.body).toBe(false);
      expect(await begun(at)).toBe(1);
    });

    if (door.repeats) {
      test('the same request sent twice, and at the same time, is one task', async () => {
        const at = await open();
        await Promise.all([door.begin(at, 'ana', 'k1', 'go'), door.begin(at, 'ana', 'k1', 'go')]);
        await door.begin(at, 'ana', 'k1', 'go');
        expect(await begun(at)).toBe(1);
        await door.begin(at, 'ana', 'k2', 'go');
        expect(await begun(at)).toBe(2);
      });
    }

    const { read, follow } = door;
    if (read) {
      test('work is shown with its public content and nothing else', async () => {
        const at = await open();
        const shown = await read(at, 'ana', await ended(at, await door.begin(at, 'ana', 'k1', 'go')));
        expect(shown).toContain(SAID.public);
        expect(shown).not.toContain(SAID.internal);
        expect(shown).not.toContain(SAID.receipt_only);
      });

      test('work of another tenant is answered like work that never was', async () => {
        const at = await open();
        const mine = await ended(at, await door.begin(at, 'ana', 'k1', 'go'));
        const nowhere = { ...mine, body: mine.body.replaceAll(/(task|run|session)_[A-Za-z0-9]+/g, changed) };
        const alike = (shown: string, reply: Reply) =>
          (reply.body.match(/(?:task|run|session)_[A-Za-z0-9]+/g) ?? []).reduce(
            (text, id) => text.replaceAll(id, 'ID'),
            shown,
          );
        const hidden = await read(at, 'wile', mine);
        expect(hidden).not.toContain(SAID.public);
        expect(unnumbered(alike(hidden, mine))).toBe(unnumbered(alike(await read(at, 'wile', nowhere), nowhere)));
      });
    }

    if (follow) {
      test('closing the door ends what is being followed, and closing it again does nothing', async () => {
        const at = await open();
        const { ended: over } = await follow(at, 'ana', await door.begin(at, 'ana', 'k1', 'wait'));
        const closable = at.doors.get(name)!;
        await closable.close();
        await over;
        await closable.close();
      });
    } else {
      test('closing the door finishes, twice as well', async () => {
        const at = await open();
        await door.begin(at, 'ana', 'k1', 'go');
        await at.doors.get(name)!.close();
        await at.doors.get(name)!.close();
      });
    }
  });
}

const open = () => openAllDoors({ agents: [speaker()], people: PEOPLE, rules: '[{ id: all, then: allow }]' });

/** Says a word of each visibility; asked to wait, it goes on until it is stopped. */
function speaker(): AgentBackend {
  return scriptedAgent(async (sink, work, signal) => {
    const parts = Object.entries(SAID).map(([visibility, text]) => ({ type: 'text', text, visibility }));
    await sink.emit({ event: 'agent.message', payload: { message: { role: 'assistant', parts } as never } });
    if (JSON.stringify(work.task.input).includes('wait')) await untilAborted(signal);
    return undefined;
  });
}

/** How many tasks there are: work that was begun, or runs that acts were proposed in. */
async function begun(at: AllDoors): Promise<number> {
  return (await at.at.all()).filter(({ event }) => event === 'task.submitted').length;
}

async function ended(at: AllDoors, reply: Reply): Promise<Reply> {
  const task = (await at.at.all()).find(({ event }) => event === 'task.submitted')?.task_id;
  await at.at.until(String(task));
  return reply;
}

/** The same id with other last letters: of the same shape, and nobody's. */
const changed = (id: string) => `${id.slice(0, -2)}zz`;
/** Without what differs between any two answers. */
const unnumbered = (text: string) =>
  text.replaceAll(/req_\d+/g, 'req').replaceAll(/"(request_id|correlation_id)":"[^"]*"/g, '');
