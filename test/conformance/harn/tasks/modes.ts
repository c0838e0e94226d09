/** Modes of a session: how far its work may go by itself, judged by what leaves the gateway and what is asked. */
import type { Session, Task } from '../../../../src/model/resources.ts';
import { among, equal, truth } from '../harness/expect.ts';
import { category, each } from '../harness/suite.ts';
import { said, type Target } from '../harness/target.ts';

type Moded = Session & { readonly mode_id?: string };

const inMode = async (at: Target, mode_id: string | null, more: object = {}) =>
  (await at.session({ mode_id, ...more })) as Moded;

/** The state in which the work first waits or ends, and how many effects it had by then. */
async function work(at: Target, words: string, session: string): Promise<readonly [state: string, effects: number]> {
  const before = (await at.mine().effects()).length;
  const { id } = await at.submit(words, session);
  const { status } = await at.reaches(id, 'AUTH_REQUIRED', 'COMPLETED', 'FAILED');
  const effects = (await at.mine().effects()).length - before;
  if (status === 'AUTH_REQUIRED') await at.ok('POST', `/v1/tasks/${id}/cancel`, { body: {} });
  return [status, effects];
}

export const modes = category('modes', {
  ...each(
    [
      // What the rules of this gateway allow without a question: only a mode can stand in its way.
      ['code', 'read plan', 'COMPLETED', true],
      ['ask', 'read plan', 'COMPLETED', true],
      ['architect', 'read plan', 'AUTH_REQUIRED', false],
      ['shadow', 'read plan', 'COMPLETED', false],
      ['code', 'write plan milk', 'COMPLETED', true],
      ['ask', 'write plan milk', 'AUTH_REQUIRED', false],
      ['architect', 'write plan milk', 'AUTH_REQUIRED', false],
      ['shadow', 'write plan milk', 'COMPLETED', false],
    ] as const,
    ([mode, words, state, runs]) =>
      `in ${mode}, "${words}" comes to ${state}, the tool ${runs ? 'ran' : 'did not run'}`,
    async ([mode, words, state, runs], at) => {
      at.mine();
      const { id } = await inMode(at, mode);
      const task = await at.submit(words, id);
      equal((await at.reaches(task.id, 'AUTH_REQUIRED', 'COMPLETED', 'FAILED')).status, state, 'state');
      const reported = (await at.events(`/v1/tasks/${task.id}/events`)).map(({ event }) => event);
      equal(reported.includes('tool.completed'), runs, 'whether the tool ran');
      if (state === 'AUTH_REQUIRED') await at.ok('POST', `/v1/tasks/${task.id}/cancel`, { body: {} });
    },
  ),
  async 'no mode widens what is asked about'(at) {
    equal(await work(at, 'send the plan to bo', (await inMode(at, 'code')).id), ['AUTH_REQUIRED', 0], 'a mail');
  },
  async 'in shadow nothing leaves, whatever is tried'(at) {
    const { id } = await inMode(at, 'shadow');
    for (const words of ['send the plan to bo', 'write plan milk', 'delete plan']) {
      equal(await work(at, words, id), ['COMPLETED', 0], words);
    }
  },
  async 'the mode is shown, in every reading, and a fork keeps it'(at) {
    const session = await inMode(at, 'architect');
    equal(session.mode_id, 'architect', 'as made');
    equal((await at.ok<Moded>('GET', `/v1/sessions/${session.id}`)).mode_id, 'architect', 'as read');
    const fork = await at.ok<Moded>('POST', `/v1/sessions/${session.id}/fork`, { body: {} });
    equal(fork.mode_id, 'architect', 'the fork');
  },
  async 'a persona that may less stays with less'(at) {
    at.mine();
    const body = {
      name: 'careful',
      version: '1',
      entry_workflow: 'demo',
      description: 'asks first',
      autonomy_tier: 'act_with_approval',
      receipt_policy: 'optional',
    };
    const persona = await at.ok<{ id: string }>('POST', '/v1/personas', { body });
    const { id } = await inMode(at, 'code', { persona_id: persona.id });
    equal((await work(at, 'write plan milk', id))[0], 'AUTH_REQUIRED', 'in code');
  },
  async 'null is as if nothing was said'(at) {
    among((await inMode(at, null)).mode_id, [undefined, 'ask', 'code'], 'mode_id');
  },
  ...each(
    ['yolo', '', 7, ['code']],
    (mode_id) => `the mode ${JSON.stringify(mode_id)} is 400`,
    async (mode_id, at) => {
      const body = { workspace_id: (await at.workspace()).id, mode_id };
      await at.refused('invalid_request', 'POST', '/v1/sessions', { body });
    },
  ),
  ...each(
    [
      { provider: 'p' },
      { provider: '', model: 'm' },
      { provider: 'p', model: 'm', reasoning_effort: 'turbo' },
      { provider: 'p', model: 'm', preset: 'friendly' },
    ],
    (model_policy) => `the model policy ${JSON.stringify(model_policy)} is 400, for a new session and for an old one`,
    async (model_policy, at) => {
      const session = await at.session();
      const body = { workspace_id: session.workspace_id, model_policy };
      await at.refused('invalid_request', 'POST', '/v1/sessions', { body });
      await at.refused('invalid_request', 'PATCH', `/v1/sessions/${session.id}`, { body: { model_policy } });
    },
  ),
  async 'a model policy is kept and shown, or refused: never dropped'(at) {
    const { id, workspace_id } = await at.session();
    const model_policy = { provider: 'p', model: 'm' };
    const answers = [
      await at.ask<{ model_policy?: object }>('POST', '/v1/sessions', { body: { workspace_id, model_policy } }),
      await at.ask<{ model_policy?: object }>('PATCH', `/v1/sessions/${id}`, { body: { model_policy } }),
    ];
    for (const { status, body } of answers) {
      const kept = JSON.stringify(body?.model_policy) === JSON.stringify(model_policy);
      truth(status === 400 || (status < 300 && kept), `${status}, and model_policy is ${JSON.stringify(body)}`);
    }
    const task = await at.ok<Task>('POST', `/v1/sessions/${id}/tasks`, { body: { input: said('hello') } });
    equal((await at.ended(task.id)).status, 'COMPLETED', 'work in the session afterwards');
  },
  async 'private inputs are listed by name and removed, and a value is in no answer and no event'(at) {
    const { id } = await at.session();
    const put = { kind: 'put', spec: { name: 'SERVICE_KEY' }, value: 'hunter2-conformance' };
    const command = (body: object) => at.ask('POST', `/v1/sessions/${id}/inputs`, { body });
    const answers = [await command(put), await command({ kind: 'list' })];
    equal(answers[0]?.status, 200, 'status of put');
    truth(answers[1]?.text.includes('"SERVICE_KEY"') ?? false, 'the name is not in the list');
    answers.push(await command(put));
    truth((answers[2]?.status ?? 0) >= 400, 'a second put without replace was accepted');
    answers.push(await command({ kind: 'remove', name: 'SERVICE_KEY' }), await command({ kind: 'list' }));
    truth(!answers[4]?.text.includes('SERVICE_KEY'), 'a removed input is in the list');
    answers.push(await command({ put: { token: 'hunter2-conformance' } }));
    equal(answers[5]?.status, 400, 'status of a command that there is not');
    for (const { text } of answers) truth(!text.includes('hunter2'), 'the value is in the answer');
    const events = JSON.stringify(await at.events(`/v1/sessions/${id}/events`));
    truth(!events.includes('hunter2'), 'the value is in the log');
    const { paths } = await at.ok<{ paths: object }>('GET', '/openapi.json');
    truth('/v1/sessions/{session_id}/inputs' in paths, 'the description does not have it');
  },
});
