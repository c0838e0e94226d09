/** Tools of several servers: found by name without reading everything, and listed anew only when a server has other tools. */
import { expect, onTestFinished, test, vi } from 'vitest';
import { createTools } from '../../../../src/core/tools/catalog.ts';
import type { Actor } from '../../../../src/model/actions.ts';
import type { Skill } from '../../../../src/model/resources.ts';
import { type ToolBackend, wrapTools } from '../../../../src/ports/index.ts';

const ANN: Actor = { id: 'ann', kind: 'person', scopes: ['*'] };
const skill = (name: string, description = name): Skill => ({
  id: `skill_${name}`,
  object: 'skill',
  created_at: 'c',
  updated_at: 'c',
  metadata: {},
  name,
  description,
  input_schema: null,
  output_schema: null,
});

function serverOf(name: string, skills: readonly Skill[]) {
  const backend: ToolBackend & { skills: readonly Skill[] } = {
    name,
    skills,
    list: async () => backend.skills,
    call: async () => ({ status: 'ok', output: null }),
  };
  return backend;
}

test('the list stays the same until a server has another, or another server is there', async () => {
  const [a, b] = [serverOf('a', [skill('one')]), serverOf('b', [skill('two')])];
  const nothing: ToolBackend = { ...serverOf('nothing', []), list: async () => [] };
  const backends = [a, b, nothing];
  const tools = createTools(
    () => backends,
    () => 'hash',
  );
  const first = await tools.list(ANN);
  expect(first.map(({ name, source }) => [name, source])).toEqual([
    ['one', 'a'],
    ['two', 'b'],
  ]);
  expect(await tools.list(ANN)).toBe(first);
  b.skills = [skill('two'), skill('three')];
  expect((await tools.list(ANN)).map(({ name }) => name)).toEqual(['one', 'two', 'three']);
  backends.splice(0, backends.length, b);
  expect((await tools.list(ANN)).map(({ name }) => name)).toEqual(['two', 'three']);
  // The same tools at another server are that server's.
  backends.splice(0, backends.length, { ...b, name: 'c' });
  expect((await tools.list(ANN)).map(({ source }) => source)).toEqual(['c', 'c']);
});

test('a tool is found as it is now, and the first of one name is the one', async () => {
  const a = serverOf('a', [skill('one', 'first'), skill('one', 'second')]);
  const tools = createTools(
    () => [a],
    () => 'hash',
  );
  expect((await tools.find(ANN, 'one'))?.skill.description).toBe('first');
  expect(await tools.find(ANN, 'two')).toBeUndefined();
  a.skills = [skill('two')];
  expect((await tools.find(ANN, 'two'))?.skill.name).toBe('two');
  expect(await tools.find(ANN, 'one')).toBeUndefined();
});

test('a server that is away is listed as it was, and marked for as long as it is', async () => {
  const a = serverOf('a', [skill('one')]);
  const tools = createTools(
    () => [a],
    () => 'hash',
  );
  expect(await tools.list(ANN)).toHaveLength(1);
  const { list } = a;
  a.list = () => Promise.reject(new Error('away'));
  expect(await tools.list(ANN)).toHaveLength(1);
  expect(tools.states(ANN)).toEqual([
    { name: 'a', state: 'unavailable', since: expect.any(String), reason: expect.any(String) },
  ]);
  // An act is not decided by a list that may be old.
  await expect(tools.find(ANN, 'one', 'a')).rejects.toThrow('does not say which tools it has');
  a.list = list;
  tools.again('a');
  expect(await tools.list(ANN)).toHaveLength(1);
  expect(tools.states(ANN)).toMatchObject([{ name: 'a', state: 'ready' }]);
});

test('a server that hangs is waited for once, and not at all for a tool of another', async () => {
  const a = serverOf('a', [skill('one')]);
  let answer: (skills: readonly Skill[]) => void = () => {};
  const hangs = serverOf('hangs', []);
  hangs.list = () =>
    new Promise((resolve) => {
      answer = resolve;
    });
  const tools = createTools(
    () => [hangs, a],
    () => 'hash',
  );
  expect((await tools.list(ANN)).map(({ name }) => name)).toEqual(['one']);
  expect(tools.states(ANN)).toMatchObject([
    { name: 'hangs', state: 'starting' },
    { name: 'a', state: 'ready' },
  ]);
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  // No time passes here: it would wait for ever for the server that hangs.
  expect((await tools.list(ANN)).map(({ name }) => name)).toEqual(['one']);
  expect((await tools.find(ANN, 'one', 'a'))?.server).toBe('a');
  expect(tools.lastListed(ANN, 'one', 'a')?.server).toBe('a');
  answer([]);
  hangs.list = async () => [skill('late')];
  expect((await tools.list(ANN)).map(({ name }) => name)).toEqual(['late', 'one']);
});

test('a tool that was looked up counts for the act that names it, for as long as its server is mounted', async () => {
  const [a, b] = [serverOf('a', [skill('one'), skill('two')]), serverOf('b', [skill('one')])];
  let backends = [a, b];
  const tools = createTools(
    () => backends,
    () => 'hash',
  );
  const found = await tools.find(ANN, 'one', 'a');
  expect(tools.known(ANN, found, { tool: 'one', server: 'a' })).toBe(found);
  expect(tools.known(ANN, found, { tool: 'two', server: 'a' })).toBeUndefined();
  expect(tools.known(ANN, found, { tool: 'one', server: 'b' })).toBeUndefined();
  expect(tools.known(ANN, found, { tool: 'one' })).toBeUndefined();
  expect(tools.known(ANN, { skill: skill('one') }, { tool: 'one', server: 'a' })).toBeUndefined();
  backends = [b];
  expect(tools.known(ANN, found, { tool: 'one', server: 'a' })).toBeUndefined();
});

test('a door that was handed a tool cannot run it', async () => {
  const tools = createTools(
    () => [serverOf('a', [skill('one')])],
    () => 'hash',
  );
  const found = await tools.find(ANN, 'one', 'a');
  const members = [...Object.values({ ...found }), ...Object.getOwnPropertyNames(Object.getPrototypeOf(found))];
  expect(members).not.toContain('run');
  expect(members.filter((member) => typeof member === 'function' || member instanceof Map)).toEqual([]);
});

test('a server that is used with credentials of each caller is listed and found for this caller only', async () => {
  const BOB: Actor = { ...ANN, id: 'bob' };
  const own = new Map([ANN, BOB].map(({ id }) => [id, serverOf('theirs', [skill(`of_${id}`)])]));
  const shared: ToolBackend = {
    ...serverOf('theirs', []),
    forCaller: ({ id }) => own.get(id) ?? serverOf('theirs', []),
  };
  const wrapped = wrapTools(shared, (one) => ({ ...one, attributes: () => ({ wrapped: true }) }));
  const tools = createTools(
    () => [serverOf('all', [skill('one')]), wrapped],
    () => 'hash',
  );
  const names = async (actor: Actor) => (await tools.list(actor)).map(({ name }) => name);
  expect(await names(ANN)).toEqual(['one', 'of_ann']);
  expect(await names(BOB)).toEqual(['one', 'of_bob']);
  expect(await names({ ...ANN, id: 'eve' })).toEqual(['one']);
  const found = await tools.find(ANN, 'of_ann', 'theirs');
  expect(found?.attributes('')).toEqual({ wrapped: true });
  expect(await tools.find(BOB, 'of_ann', 'theirs')).toBeUndefined();
  expect(tools.lastListed(BOB, 'of_ann', 'theirs')).toBeUndefined();
  // A tool that one caller looked up is not the tool of another.
  expect(tools.known(ANN, found, { tool: 'of_ann', server: 'theirs' })).toBe(found);
  expect(tools.known(BOB, found, { tool: 'of_ann', server: 'theirs' })).toBeUndefined();
});

test('a call by name waits for a server that is still starting when no other has the tool', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const quick = serverOf('quick', [skill('one')]);
  const starting = serverOf('starting', []);
  let answer: (skills: readonly Skill[]) => void = () => {};
  starting.list = () =>
    new Promise((resolve) => {
      answer = resolve;
    });
  const tools = createTools(
    () => [quick, starting],
    () => 'hash',
  );
  const found = tools.find(ANN, 'two');
  await vi.advanceTimersByTimeAsync(3_000);
  answer([skill('two')]);
  expect((await found)?.skill.name).toBe('two');
  const unknown = tools.find(ANN, 'three');
  unknown.catch(() => {});
  await vi.advanceTimersByTimeAsync(10_000);
  await expect(unknown).rejects.toThrow('starting does not say which tools it has');
});
