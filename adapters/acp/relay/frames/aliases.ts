/**
 * Session ids that differ on the two sides. An agent that cannot restore a session gets a new one; the editor keeps the id it
 * knows. Everything between the two wires sees the editor's id only.
 */
import type { OrderedWriter } from '../../../../src/transport/ndjson/ordered-writer.ts';
import { objectOf } from '../../shapes.ts';
import type { Frame } from './frame.ts';
import { memberAt, withMember } from './members.ts';

export interface Aliases {
  set(editor: string, agent: string): void;
  /** The frame with the editor's id; the frame itself when its session has no other. */
  fromAgent(frame: Frame): Frame;
  /** Writes to the agent with the agent's ids. */
  toAgent(writer: OrderedWriter): OrderedWriter;
}

const SESSION = ['params', 'sessionId'];

export function createAliases(): Aliases {
  const [agents, editors] = [new Map<string, string>(), new Map<string, string>()];

  function renamed(line: Buffer): Buffer {
    if (agents.size === 0) return line;
    const member = memberAt(line, SESSION);
    const other = member && agents.get(line.toString('utf8', member.start + 1, member.end - 1));
    return other === undefined ? line : withMember(line, SESSION, other);
  }

  return {
    set(editor, agent) {
      if (editor === agent) return;
      editors.delete(agents.get(editor) ?? '');
      agents.set(editor, agent);
      editors.set(agent, editor);
    },
    fromAgent(frame) {
      if (editors.size === 0 || (frame.kind !== 'request' && frame.kind !== 'notification')) return frame;
      const params = objectOf(frame.message.params);
      const editor = editors.get(typeof params?.sessionId === 'string' ? params.sessionId : '');
      if (editor === undefined) return frame;
      const message = { ...frame.message, params: { ...params, sessionId: editor } };
      return { ...frame, message, line: withMember(frame.line, SESSION, editor) };
    },
    toAgent: (writer) => ({
      send: (bytes) => writer.send(renamed(bytes)),
      sendAfter: (ready, bytes) => writer.sendAfter(ready, () => renamed(bytes())),
      flushed: () => writer.flushed(),
      get full() {
        return writer.full;
      },
    }),
  };
}
