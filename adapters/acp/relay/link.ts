/**
 * The two streams, from the first byte on. The agent is slow to start and so is the relay: `initialize` has no effect and is
 * forwarded at once, everything else waits, unread, until the relay can decide about it. Imports nothing heavy.
 */
import type { Readable, Writable } from 'node:stream';
import { NOT_JSON } from '../../../src/transport/json-rpc/messages.ts';
import { sameId } from '../../../src/transport/json-rpc/raw-id.ts';
import { type ByteLines, type LineVerdict, readByteLines } from '../../../src/transport/ndjson/byte-lines.ts';
import { createOrderedWriter, type OrderedWriter } from '../../../src/transport/ndjson/ordered-writer.ts';
import { textOf, within } from '../shapes.ts';
import { type Frame, frameOf, idOf, type Request, type Response, unreadable } from './frames/frame.ts';
import type { RunOn } from './frames/repeated-lines.ts';
import { restorable } from './frames/restorable.ts';

/** Inspects lines once the relay is ready. */
export interface Looker {
  fromEditor(frame: Frame): LineVerdict;
  fromAgent(frame: Frame): LineVerdict;
  /** Recognizes lines of the agent that need no inspection of their own. */
  readonly runOn: RunOn;
  early(request: Request, answer: Response | undefined): void;
  /** The agent's frames before the relay was ready, in order, and the number of further ones that were not kept. */
  earlyFrames(frames: readonly Frame[], missed: number): void;
}

export interface RelayLink {
  readonly editor: OrderedWriter;
  readonly agent: OrderedWriter;
  attach(looker: Looker): void;
  /** Settle when a side's stream has ended. */
  readonly editorEnded: Promise<Error | undefined>;
  readonly agentEnded: Promise<Error | undefined>;
  /** When the agent last sent anything. */
  agentReceivedAt(): number;
  /** The agent's name for itself, once it has responded to `initialize`; undefined when it has none, or something else came first. */
  readonly agentName: Promise<string | undefined>;
}

interface Streams {
  readonly editor: { readonly input: Readable; readonly output: Writable };
  readonly agent: { readonly stdin: Writable; readonly stdout: Readable };
  /** Whether the editor is told that every session can be loaded and resumed. */
  readonly additions: boolean;
}

/** Images are sent inside lines, so lines may be long. */
export const LONGEST_LINE = 64 * 1024 * 1024;

export function openLink({ editor, agent, additions }: Streams): RelayLink {
  let looker: Looker | undefined;
  const greetings: { request: Request; answer: Response | undefined }[] = [];
  const earlyFrames = createEarly();
  let named: (name: string | undefined) => void = () => {};
  const agentName = new Promise<string | undefined>((resolve) => {
    named = resolve;
  });
  const toEditor = createOrderedWriter(editor.output, () => fromAgent.room());
  const toAgent = createOrderedWriter(agent.stdin, () => fromEditor.room());

  const fromEditor = side(editor.input, toAgent, {
    look(frame) {
      if (looker) return looker.fromEditor(frame);
      if (frame.kind === 'request' && frame.method === 'initialize') {
        greetings.push({ request: frame, answer: undefined });
        return true;
      }
      named(undefined);
      return undefined;
    },
  });
  const fromAgent = side(agent.stdout, toEditor, {
    look(frame) {
      if (looker) return looker.fromAgent(frame);
      if (frame.kind === 'response') {
        const greeting = greetings.find(({ request }) => sameId(idOf(request)) === sameId(idOf(frame)));
        if (!greeting || greeting.answer) {
          named(undefined);
          return undefined;
        }
        greeting.answer = frame;
        named(textOf(within(frame.message, 'result', 'agentInfo', 'name')));
        const line = additions ? restorable(frame) : frame.line;
        return line === frame.line ? true : () => toEditor.send(line);
      }
      if (frame.kind === 'blank') return DROPPED;
      if (frame.kind === 'noise') return () => earlyFrames.keep(frame);
      if (frame.kind === 'notification' && mayPassEarly(frame.method)) {
        earlyFrames.keep(frame);
        return true;
      }
      named(undefined);
      return undefined;
    },
    through: (chunk, from) => looker?.runOn.through(chunk, from) ?? from,
  });

  void Promise.race([fromEditor.ended, fromAgent.ended]).then(() => named(undefined));
  return {
    editor: toEditor,
    agent: toAgent,
    agentName,
    editorEnded: fromEditor.ended,
    agentEnded: fromAgent.ended,
    agentReceivedAt: fromAgent.receivedAt,
    attach(handlers) {
      for (const { request, answer } of greetings) handlers.early(request, answer);
      const { frames, missed } = earlyFrames.take();
      handlers.earlyFrames(frames, missed);
      looker = handlers;
      fromEditor.release();
      fromAgent.release();
    },
  };
}

const DROPPED = () => {};

/** Notifications without an effect; the table judges all other frames, once they can be recorded. */
function mayPassEarly(method: string): boolean {
  return method === 'session/update' || method.startsWith('_');
}

const MOST_EARLY = 256;
const MOST_EARLY_BYTES = 1024 * 1024;

/** Frames that were already forwarded, kept until they can be recorded; beyond a limit they are only counted. */
function createEarly() {
  const frames: Frame[] = [];
  let bytes = 0;
  let missed = 0;
  return {
    keep(frame: Frame): void {
      if (frames.length >= MOST_EARLY || bytes + frame.line.length > MOST_EARLY_BYTES) missed += 1;
      else {
        // The line is a view of a larger buffer, which would be retained whole.
        frames.push({ ...frame, line: Buffer.from(frame.line) });
        bytes += frame.line.length;
      }
    },
    take: () => ({ frames: frames.splice(0), missed }),
  };
}

interface Side {
  readonly ended: Promise<Error | undefined>;
  receivedAt(): number;
  /** The destination has room again. */
  room(): void;
  release(): void;
}

interface Looking {
  /** Without a verdict the line is held, and everything after it. */
  look(frame: Frame): LineVerdict | undefined;
  through?(chunk: Buffer, from: number): number;
}

function side(input: Readable, out: OrderedWriter, { look, through }: Looking): Side {
  let held: Frame | undefined;
  let receivedAt = 0;
  input.on('data', () => {
    receivedAt = performance.now();
  });
  let end: (why: Error | undefined) => void = () => {};
  const ended = new Promise<Error | undefined>((resolve) => {
    end = resolve;
  });
  const pauseIfFull = () => {
    if (out.full) lines.pause();
  };
  function judged(frame: Frame, bytes: Buffer): LineVerdict {
    const verdict = look(frame);
    // A line that was re-encoded is forwarded in that form.
    if (verdict === true) return frame.line === bytes ? true : () => out.send(frame.line);
    return () => {
      if (verdict) verdict();
      else {
        held = frame;
        lines.pause();
      }
      pauseIfFull();
    };
  }
  const lines: ByteLines = readByteLines(input, {
    limit: LONGEST_LINE,
    line: (bytes) => judged(frameOf(bytes), bytes),
    tooLong() {
      const frame = unreadable(Buffer.alloc(0), NOT_JSON, `a line is longer than ${LONGEST_LINE} bytes`);
      const verdict = judged(frame, frame.line);
      if (verdict !== true) verdict();
    },
    ...(through && { through }),
    pass(bytes) {
      out.send(bytes);
      pauseIfFull();
    },
    end: (why) => end(why),
  });
  return {
    ended,
    receivedAt: () => receivedAt,
    room() {
      if (!held) lines.resume();
    },
    release() {
      const frame = held;
      if (!frame) return;
      held = undefined;
      const verdict = look(frame);
      if (verdict === true) out.send(frame.line);
      else verdict?.();
      if (!out.full) lines.resume();
    },
  };
}
