/** Idempotency: the same key and body do it once, another body is refused, a restart forgets nothing, and no key is ignored. */
import type { Task } from '../../../../src/model/resources.ts';
import { equal, truth } from '../harness/expect.ts';
import type { Revision } from '../harness/revision.ts';
import { category, each } from '../harness/suite.ts';
import { said, unique } from '../harness/target.ts';
import type { Asking, List } from '../harness/wire.ts';

const asking = (body: object | undefined, once: string): Asking => ({ once, ...(body && { body }) });

/** Members that tell one thing from another, whatever state it has come to since. */
function essence(body: unknown): unknown {
  const { id, object, session_id, valid } = (body ?? {}) as Record<string, unknown>;
  return { id, object, session_id, valid };
}

export const once = ({ keyed, unkeyed, repeated }: Revision) =>
  category('once', {
    ...each(
      keyed,
      ({ name }) => `${name} twice with one key is one, and the same answer`,
      async ({ prepare }, at) => {
        const [method, path, body] = await prepare(at);
        const key = unique('once');
        const first = await at.ask(method, path, asking(body, key));
        truth(first.status < 300, `the first was ${first.status} ${first.text.slice(0, 200)}`);
        const second = await at.ask(method, path, asking(body, key));
        equal(
          second.status,
          repeated[first.status] ?? first.status,
          `status of the second (${second.text.slice(0, 200)})`,
        );
        equal(essence(second.body), essence(first.body), 'the second answer');
      },
    ),
    ...each(
      keyed.filter(({ other }) => other !== null),
      ({ name }) => `${name} with a used key and another body is 409`,
      async ({ prepare, other }, at) => {
        const [method, path, body] = await prepare(at);
        const key = unique('once');
        await at.ok(method, path, asking(body, key));
        await at.refused('idempotency_key_reused', method, path, asking({ ...body, ...other }, key));
      },
    ),
    ...each(
      unkeyed,
      ({ name }) => `${name} takes no key: with one it is 400 and not done, without one it is done`,
      async ({ prepare }, at) => {
        const [method, path, body] = await prepare(at);
        await at.refused('invalid_request', method, path, asking(body, unique('stray')));
        // What was done already would be a conflict, or would not be there any more.
        await at.ok(method, path, body && { body });
      },
    ),
    async 'twenty at once with one key make one task'(at) {
      const { id } = await at.session();
      const key = unique('once');
      const all = await Promise.all(Array.from({ length: 20 }, () => at.submit('hello', id, { once: key })));
      equal(new Set(all.map((task) => task.id)).size, 1, 'tasks');
      const { data } = await at.ok<List<Task>>('GET', `/v1/sessions/${id}/tasks`);
      equal(data.length, 1, 'tasks of the session');
    },
    async 'the order of members and the spaces between them do not matter'(at) {
      const path = `/v1/sessions/${(await at.session()).id}/tasks`;
      const key = unique('once');
      const raw = '{"input":{"text":"hello","n":1},"metadata":{}}';
      const first = await at.ok<Task>('POST', path, { raw, once: key });
      const respelled = '{ "metadata" : {},\n "input" : { "n" : 1.0, "text" : "\\u0068ello" } }';
      equal((await at.ok<Task>('POST', path, { raw: respelled, once: key })).id, first.id, 'the task');
    },
    async 'the same key at another target is another key'(at) {
      const [one, other] = [await at.session(), await at.session()];
      const key = unique('once');
      const [first, second] = [
        await at.submit('hello', one.id, { once: key }),
        await at.submit('hello', other.id, { once: key }),
      ];
      truth(first.id !== second.id, 'the second session was given the first one’s task');
    },
    async 'the same key of two actors is two keys'(at) {
      const { key: as } = await at.mine().issue({ id: unique('colleague') });
      const { id } = await at.session();
      const key = unique('once');
      const [mine, theirs] = [
        await at.submit('hello', id, { once: key }),
        await at.submit('hello', id, { once: key, as }),
      ];
      truth(mine.id !== theirs.id, 'one was given the other’s task');
    },
    async 'without a key every request is a new one'(at) {
      const { id } = await at.session();
      const [first, second] = [await at.submit('hello', id), await at.submit('hello', id)];
      truth(first.id !== second.id, 'two requests, one task');
    },
    ...each(
      ['', 'k'.repeat(256)],
      (key) => `a key of ${key.length} characters is 400`,
      async (key, at) => {
        const path = `/v1/sessions/${(await at.session()).id}/tasks`;
        await at.refused('invalid_request', 'POST', path, { body: { input: said('hello') }, once: key });
      },
    ),
    async 'a key of 255 characters is fine'(at) {
      await at.submit('hello', undefined, { once: unique('k').padEnd(255, 'x') });
    },
    async 'a refused request does not use up its key for a good one'(at) {
      const { id } = await at.session();
      const asking = { body: { input: said('hello') }, once: unique('once') };
      await at.refused('unauthenticated', 'POST', `/v1/sessions/${id}/tasks`, { ...asking, as: null });
      await at.ok('POST', `/v1/sessions/${id}/tasks`, asking);
    },
    async 'a key is still known after the process was killed'(at) {
      const own = at.mine();
      const session = await at.session();
      const key = unique('once');
      const task = await at.submit('hello', session.id, { once: key });
      await at.ended(task.id);
      await own.crash();
      equal((await at.submit('hello', session.id, { once: key })).id, task.id, 'the task');
      const path = `/v1/sessions/${session.id}/tasks`;
      await at.refused('idempotency_key_reused', 'POST', path, { body: { input: said('bye') }, once: key });
    },
  });
