/**
 * The approval form of a client has a yes for longer than once, in both eras: the same tool is then not asked about again in
 * the session, or for a time. Only callers who may approve get that choice, and only a choice of the form counts.
 */
import { describe, expect, test } from 'vitest';
import type { Actor } from '../../../src/model/actions.ts';
import { VISITOR } from '../../support/mcp/gateway.ts';
import { openScene, outcome, type Scene, type SceneOptions } from '../../support/mcp/one-server.ts';
import { echo, type Loose } from '../../support/mcp/upstream.ts';

const ASK = '- { id: ask, when: { tool: [echo, other] }, then: ask }\n- { id: all, when: {}, then: allow }';
const UNRULED = '- { id: none, when: { tool: no-such }, then: block }';
const FORMS = { elicitation: { form: {} } };
const ALL = ['approve', 'approve for this session', 'approve for 2 hours', 'deny'];
/** Its results taint nothing, so that only the grant decides whether a second call is asked about. */
const closed = { ...echo, definition: { annotations: { openWorldHint: false } } };

/** Makes a call, answers its form if there is one, and returns the choices of the form and whether it ran. */
type CallOnce = (
  decision: string,
  tool?: string,
  seen?: (choices: readonly string[]) => void,
) => Promise<{ readonly choices?: string[]; readonly ran: boolean }>;

async function openAsking(options: SceneOptions = {}): Promise<Scene> {
  return await openScene({ rules: ASK, tools: { echo: closed, other: closed }, config: { trusted: true }, ...options });
}

const choicesIn = ({ params }: Loose): string[] => params.requestedSchema.properties.decision.enum;
const accept = (decision: string) => ({ action: 'accept', content: { decision } });

async function legacyCaller({ legacy }: Scene): Promise<CallOnce> {
  const client = await legacy(FORMS);
  return async (decision, name = 'echo', seen = () => {}) => {
    let choices: string[] | undefined;
    const received = await client.request('tools/call', { name, arguments: { text: 'hi' } }, (frame) => {
      choices = choicesIn(frame);
      seen(choices);
      return { result: accept(decision) };
    });
    return { ...(choices && { choices }), ran: outcome(received).result.isError !== true };
  };
}

async function modernCaller({ modern }: Scene, headers: Record<string, string> = {}): Promise<CallOnce> {
  return async (decision, name = 'echo', seen = () => {}) => {
    const params = { name, arguments: { text: 'hi' } };
    const how = { capabilities: FORMS, headers };
    const { result } = outcome(await modern('tools/call', params, how));
    if (result.resultType !== 'input_required') return { ran: result.isError !== true };
    const [[key, form]] = Object.entries<Loose>(result.inputRequests) as [[string, Loose]];
    seen(choicesIn(form));
    const back = { ...params, requestState: result.requestState, inputResponses: { [key]: accept(decision) } };
    const again = outcome(await modern('tools/call', back, how)).result;
    return { choices: choicesIn(form), ran: again.isError !== true };
  };
}

describe.each([
  ['legacy', legacyCaller],
  ['modern', modernCaller],
] as const)('a client of the %s era', (_, caller) => {
  test('for this session: the same tool is not asked about again, another one is', async () => {
    const call = await caller(await openAsking());
    expect(await call('approve')).toEqual({ choices: ALL, ran: true });
    expect(await call('approve for this session')).toEqual({ choices: ALL, ran: true });
    expect(await call('deny')).toEqual({ ran: true });
    expect(await call('deny', 'other')).toEqual({ choices: ALL, ran: false });
  });

  test('of a server as it is by default, without rules: what the tool itself returns does not end it', async () => {
    const call = await caller(await openScene({ rules: UNRULED, tools: { echo, other: echo } }));
    expect(await call('approve for this session')).toEqual({ choices: ALL, ran: true });
    expect([await call('deny'), await call('deny')]).toEqual([{ ran: true }, { ran: true }]);
    expect(await call('deny', 'other')).toEqual({ choices: ALL, ran: false });
  });

  test('of a server as it is by default, without rules: what another tool returns ends it, also after its own', async () => {
    const call = await caller(await openScene({ rules: UNRULED, tools: { echo, other: echo } }));
    expect(await call('approve for this session')).toEqual({ choices: ALL, ran: true });
    expect(await call('deny')).toEqual({ ran: true });
    expect(await call('approve', 'other')).toEqual({ choices: ALL, ran: true });
    expect([await call('deny'), await call('deny')]).toEqual([
      { choices: ALL, ran: false },
      { choices: ALL, ran: false },
    ]);
  });

  test('for two hours: recorded with the answer, for this caller and tool, until then', async () => {
    const scene = await openAsking();
    const call = await caller(scene);
    expect(await call('approve for 2 hours')).toEqual({ choices: ALL, ran: true });
    expect(await (await caller(scene))('deny')).toEqual({ ran: true });
    const [made, ...others] = (await scene.events()).filter(
      ({ event, resource }) => event === 'vendor.tollbridge.resource_created' && resource.object === 'permission_rule',
    );
    expect(others).toEqual([]);
    const rule = (made!.payload as Loose).resource;
    expect(rule).toMatchObject({
      scope: 'user',
      scope_value: 'visitor',
      action_pattern: 'echo',
      server: 'u',
      allow: true,
      created_by: 'visitor',
    });
    expect(Date.parse(rule.expires_at) - Date.parse(rule.created_at)).toBe(2 * 3_600_000);
  });

  const boss: Actor = { ...VISITOR, id: 'boss' };
  const narrow: Actor = { ...VISITOR, scopes: ['sessions:*', 'tasks:*', 'skills:read', 'workspaces:read'] };
  const TO_BOSS = '- { id: ask, when: { tool: echo }, then: ask, to: [boss] }\n- { id: all, when: {}, then: allow }';

  test.each([
    ['that may not answer approvals', narrow, ASK],
    ['of an act that is for another to approve', VISITOR, TO_BOSS],
  ])('a caller %s is not given the choice, and naming it is no approval', async (_name, visitor, rules) => {
    const scene = await openAsking({ rules, gateway: { authenticate: async () => visitor } });
    const call = await caller(scene);
    const choices = await new Promise<readonly string[]>((seen) => {
      void call('approve for this session', 'echo', seen).then(
        () => seen(['the call came back before its question was answered']),
        () => {},
      );
    });
    expect(choices).toEqual(expect.arrayContaining(['deny']));
    expect(choices.filter((choice) => choice.startsWith('approve for'))).toEqual([]);
    const [ask] = await scene.asks();
    const body = { ask_id: ask!.id, approved: false };
    await scene.gateway.runtime.bridge.submit({ kind: 'ask.answer', actor: boss, body });
    expect(scene.upstream.count('tools/call')).toBe(0);
    expect((await scene.events()).some(({ resource }) => resource?.object === 'permission_rule')).toBe(false);
  });
});

test('a grant of one caller is not another’s', async () => {
  const people: Record<string, Actor> = {
    ana: { id: 'ana', kind: 'person', scopes: ['*'] },
    ben: { id: 'ben', kind: 'person', scopes: ['*'] },
  };
  const scene = await openAsking({ gateway: { authenticate: async (token) => people[token ?? '']! } });
  const [ana, ben] = await Promise.all(
    ['ana', 'ben'].map((name) => modernCaller(scene, { authorization: `Bearer ${name}` })),
  );
  expect(await ana!('approve for 2 hours')).toEqual({ choices: ALL, ran: true });
  expect(await ana!('deny')).toEqual({ ran: true });
  expect(await ben!('deny')).toEqual({ choices: ALL, ran: false });
});

test('only a yes can be given for longer, and only for the session or a time', async () => {
  const scene = await openAsking();
  const client = await scene.legacy();
  const call = client.request('tools/call', { name: 'echo', arguments: { text: 'hi' } });
  const [ask] = await scene.asks();
  const actor: Actor = { ...VISITOR, interactive: true };
  const answer = (more: Loose) =>
    scene.gateway.runtime.bridge.submit({ kind: 'ask.answer', actor, body: { ask_id: ask!.id, ...more } });
  await expect(answer({ approved: false, for: 'session' })).rejects.toThrow('only a yes can be given for longer');
  await expect(answer({ approved: true, for: 'ever' })).rejects.toThrow('and not ever');
  await answer({ approved: true, for: 'session' });
  expect(outcome(await call).result.isError).toBeUndefined();
});

test('for two hours, without rules: asked again in a session that another tool’s content has reached first', async () => {
  const scene = await openScene({ rules: UNRULED, tools: { echo, other: echo } });
  const [first, second] = [await legacyCaller(scene), await legacyCaller(scene)];
  expect(await first('approve for 2 hours')).toEqual({ choices: ALL, ran: true });
  expect(await second('approve', 'other')).toEqual({ choices: ALL, ran: true });
  expect(await second('deny')).toEqual({ choices: ALL, ran: false });
  expect(await first('deny')).toEqual({ ran: true });
});
