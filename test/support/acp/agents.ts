/**
 * Agents that behave as real ones were seen to: each says yes to a prompt and then does the one thing it is here for. They
 * speak the wire by hand, because no library would let them misbehave.
 */
import type { JsonObject } from '../../../src/model/schema.ts';
import type { End, Wire } from '../wire/line-end.ts';
import { CWD, OPTIONS, text, update } from './relay.ts';

const END = { stopReason: 'end_turn' };
const report = (agent: End, kind: string, more: object) => agent.notify('session/update', update(kind, more));

function question(agent: End, toolCall: object, options: readonly object[] = OPTIONS): Promise<Wire> {
  return agent.ask('session/request_permission', { sessionId: 's1', toolCall, options });
}

function said(answer: Wire): unknown {
  const { outcome } = (answer.result ?? {}) as { outcome?: { optionId?: string; outcome?: string } };
  return outcome?.optionId ?? outcome?.outcome;
}

/** Runs a command without asking anyone. */
export function neverAsks(agent: End): void {
  agent.on('session/prompt', () => {
    report(agent, 'tool_call', {
      toolCallId: 'c1',
      title: 'rm -r build',
      kind: 'execute',
      status: 'in_progress',
      rawInput: { command: 'rm -r build' },
    });
    report(agent, 'tool_call_update', { toolCallId: 'c1', status: 'completed', rawOutput: { exitCode: 0 } });
    return END;
  });
}

/** Asks before it has mentioned the call, and after a no never mentions it again. */
export function asksFirst(agent: End, answers: unknown[]): void {
  agent.on('session/prompt', async () => {
    answers.push(
      said(await question(agent, { toolCallId: 'g1', title: 'Write notes', kind: 'edit', status: 'pending' })),
    );
    return END;
  });
}

/** Reports the call, and asks with nothing but its id while it is already running. */
export function asksById(agent: End, answers: unknown[]): void {
  agent.on('session/prompt', async () => {
    report(agent, 'tool_call', {
      toolCallId: 'o1',
      title: 'bash',
      kind: 'execute',
      status: 'in_progress',
      rawInput: { command: 'make' },
    });
    const answer = said(await question(agent, { toolCallId: 'o1' }));
    answers.push(answer);
    report(agent, 'tool_call_update', { toolCallId: 'o1', status: answer === 'once' ? 'completed' : 'failed' });
    return END;
  });
}

/** Offers to be asked no more, twice and first; or offers nothing else. */
export function supportsAlways(agent: End, answers: unknown[], only = false): void {
  const always = [
    { optionId: 'always-tool', name: 'Always this tool', kind: 'allow_always' },
    { optionId: 'always-all', name: 'Always', kind: 'allow_always' },
  ];
  agent.on('session/prompt', async () => {
    const options = only ? [...always, OPTIONS[2] as object] : [...always, ...OPTIONS.slice(1)];
    answers.push(said(await question(agent, { toolCallId: 'q1', title: 'Edit', kind: 'edit' }, options)));
    return END;
  });
}

/** Writes a file through the editor, and reports the same write once more when the call is done. */
export function writesTwice(agent: End, { reported = `${CWD}/a.txt`, first = true } = {}): void {
  const path = `${CWD}/a.txt`;
  agent.on('session/prompt', async () => {
    const call = {
      toolCallId: 'w1',
      title: 'Write',
      kind: 'edit',
      rawInput: { filePath: path },
      locations: [{ path }],
    };
    report(agent, 'tool_call', { ...call, status: 'pending' });
    await question(agent, { toolCallId: 'w1' });
    const write = () => agent.ask('fs/write_text_file', { sessionId: 's1', path, content: 'new\n' });
    const done = () => {
      const content = [{ type: 'diff', path: reported, oldText: null, newText: 'new\n' }];
      report(agent, 'tool_call_update', { toolCallId: 'w1', status: 'completed', content });
    };
    if (first) await write();
    done();
    if (!first) await write();
    return END;
  });
}

/** Writes to the disk itself and only tells. */
export function writesItself(agent: End): void {
  agent.on('session/prompt', async () => {
    await question(agent, { toolCallId: 'd1', title: 'Edit', kind: 'edit' });
    const content = [{ type: 'diff', path: `${CWD}/b.txt`, oldText: 'a', newText: 'b' }];
    report(agent, 'tool_call_update', { toolCallId: 'd1', status: 'completed', content });
    return END;
  });
}

/** Says what it used, each in its own way. */
export function saysUsage(agent: End, where: 'result' | 'quota' | 'chunk'): void {
  const usage = { inputTokens: 12, outputTokens: 3, totalTokens: 15 };
  agent.on('session/prompt', () => {
    agent.notify('session/update', text('ok'));
    if (where === 'result') {
      report(agent, 'usage_update', { used: 10, size: 100, cost: { amount: 0.25, currency: 'USD' } });
      return { ...END, usage };
    }
    if (where === 'chunk') {
      report(agent, 'agent_message_chunk', { content: { type: 'text', text: '' }, _meta: { usage, durationMs: 5 } });
      return END;
    }
    const quota = { token_count: { input_tokens: 12, output_tokens: 3 }, model_usage: [{ model: 'm-1' }] };
    return { ...END, _meta: { quota } };
  });
}

/** Goes on talking after it has said that it is done. */
export function talksLate(agent: End): void {
  agent.on('session/prompt', (_, { id }) => {
    agent.notify('session/update', text('first'));
    agent.say({ id, result: END });
    agent.notify('session/update', text('one more thing'));
    agent.notify('session/update', text(', and another'));
    return undefined;
  });
}

/** Wants a permission after its turn is over. */
export function asksLate(agent: End, answers: unknown[]): void {
  agent.on('session/prompt', (_, { id }) => {
    agent.say({ id, result: END });
    void question(agent, { toolCallId: 'l1', title: 'Clean up', kind: 'delete' }).then((answer) =>
      answers.push(said(answer)),
    );
    return undefined;
  });
}

/** Uses one name for two calls. */
export function reusesIds(agent: End, answers: unknown[]): void {
  agent.on('session/prompt', async () => {
    for (const title of ['First', 'Second']) {
      report(agent, 'tool_call', { toolCallId: 'same', title, kind: 'edit', status: 'pending' });
      answers.push(said(await question(agent, { toolCallId: 'same' })));
      report(agent, 'tool_call_update', { toolCallId: 'same', status: 'completed' });
    }
    return END;
  });
}

/** Tells its history again before it answers. */
export function replays(agent: End): void {
  agent.on('session/load', () => {
    report(agent, 'user_message_chunk', { content: { type: 'text', text: 'before' } });
    agent.notify('session/update', text('said long ago'));
    return { modes: { currentModeId: 'default', availableModes: [] } };
  });
}

/** Takes its question back. */
export function takesBack(agent: End, answers: unknown[]): void {
  agent.on('session/prompt', async () => {
    const asked = agent.ask(
      'session/request_permission',
      { sessionId: 's1', toolCall: { toolCallId: 'b1', kind: 'edit' }, options: OPTIONS },
      'mine',
    );
    await agent.received(({ method }) => method === '_test/now');
    agent.notify('$/cancel_request', { requestId: 'mine' });
    answers.push(said(await asked));
    return END;
  });
}

export const modes = (currentModeId: string): JsonObject => ({
  modes: {
    currentModeId,
    availableModes: [
      { id: 'default', name: 'Ask' },
      { id: 'yolo', name: 'Yolo' },
      { id: 'plan', name: 'Plan' },
    ],
  },
});
