/** An agent made with the published kit of the protocol, which checks what it is sent against the schema. */
import { Readable, Writable } from 'node:stream';
import * as acp from '@agentclientprotocol/sdk';

const { agent: incoming, client: outgoing } = acp.methods;
const running = new Map();

acp
  .agent({ name: 'published' })
  .onRequest(incoming.initialize, () => ({
    protocolVersion: acp.PROTOCOL_VERSION,
    agentInfo: { name: 'published', version: '0.1.0' },
    agentCapabilities: { promptCapabilities: { embeddedContext: true } },
  }))
  .onRequest(incoming.session.new, () => ({ sessionId: 'only' }))
  .onNotification(incoming.session.cancel, ({ params }) => running.get(params.sessionId)?.abort())
  .onRequest(incoming.session.prompt, async ({ params, client }) => {
    const { sessionId } = params;
    const stop = new AbortController();
    running.set(sessionId, stop);
    const say = (update) => client.notify(outgoing.session.update, { sessionId, update });
    const path = params.prompt[0].text;
    await say({ sessionUpdate: 'tool_call', toolCallId: 't1', title: 'touch a file', kind: 'edit', status: 'pending' });
    const { outcome } = await client.request(outgoing.session.requestPermission, {
      sessionId,
      toolCall: { toolCallId: 't1', rawInput: { path } },
      options: [
        { optionId: 'ever', name: 'Always', kind: 'allow_always' },
        { optionId: 'go', name: 'Allow', kind: 'allow_once' },
        { optionId: 'no', name: 'Reject', kind: 'reject_once' },
      ],
    });
    if (stop.signal.aborted || outcome.outcome === 'cancelled') return { stopReason: 'cancelled' };
    if (outcome.optionId !== 'go') return { stopReason: 'refusal' };
    await client.request(outgoing.fs.writeTextFile, { sessionId, path, content: 'touched' });
    const { content } = await client.request(outgoing.fs.readTextFile, { sessionId, path });
    const terminal = await client.createTerminal({ sessionId, command: 'cat', args: [path] });
    await terminal.waitForExit();
    const { output } = await terminal.currentOutput();
    await terminal.release();
    await say({ sessionUpdate: 'tool_call_update', toolCallId: 't1', status: 'completed' });
    await say({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: `${content} ${output}` } });
    return { stopReason: 'end_turn' };
  })
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
