/**
 * The two streams, from the first byte on. An agent is slow to start and so are we: greetings have no effect on the world and
 * go through at once, everything else waits, unread, until there is a relay to decide about it. Imports nothing heavy.
 */
import type { Readable, Writable } from 'node:stream';
import { type ByteLines, type LineVerdict, readByteLines } from '../../../src/wire/byte-lines.ts';
import { createOrderedWriter, type OrderedWriter } from '../../../src/wire/ordered-writer.ts';
import { type Frame, frameOf, idOf, NOT_JSON, type Request, type Response, sameId, unreadable } from './frame.ts';
import type { RunOn } from './run-on.ts';

/** What looks at lines once it is there. */
export interface Looker {
  fromEditor(frame: Frame): LineVerdict;
  fromAgent(frame: Frame): LineVerdict;
  /** Lines of the agent's that need no look of their own. */
  readonly runOn: RunOn;
  early(request: Request, answer: Response | undefined): void;
  /** What the agent said before anyone looked, in its order, and how much more of it there was than was kept. */
  earlyTold(frames: readonly Frame[], missed: number): void;
}

export interface Link {
  readonly editor: OrderedWriter;
  readonly agent: OrderedWriter;
  attach(looker: Looker): void;
  /** Settle when a side has nothing more to say. */
  readonly editorEnded: Promise<Error | undefined>;
  readonly agentEnded: Promise<Error | undefined>;
}

export interface Streams {
  readonly editor: { readonly input: Readable; readonly output: Writable };
  readonly agent: { readonly stdin: Writable; readonly stdout: Readable };
}

/** Images travel inside of lines, so they have to be allowed to be long. */
export const LONGEST_LINE = 64 * 1024 * 1024;

export function openLink({ editor, agent }: Streams): Link {
  let looker: Looker | undefined;
  const greetings: { request: Request; answer: Response | undefined }[] = [];
  const told = createEarly();
  const toEditor = createOrderedWriter(editor.output, () => fromAgent.room());
  const toAgent = createOrderedWriter(agent.stdin, () => fromEditor.room());

  const fromEditor = side(editor.input, toAgent, {
    look(frame) {
      if (looker) return looker.fromEditor(frame);
      if (frame.kind !== 'request' || frame.method !== 'initialize') return undefined;
      greetings.push({ request: frame, answer: undefined });
      return true;
    },
  });
  const fromAgent = side(agent.stdout, toEditor, {
    look(frame) {
      if (looker) return looker.fromAgent(frame);
      if (frame.kind === 'response') {
        const greeting = greetings.find(({ request }) => sameId(idOf(request)) === sameId(idOf(frame)));
        if (!greeting || greeting.answer) return undefined;
        greeting.answer = frame;
        return true;
      }
      if (frame.kind === 'blank') return DROPPED;
      if (frame.kind === 'noise') return () => told.keep(frame);
      if (frame.kind !== 'notification' || !mayPassEarly(frame.method)) return undefined;
      told.keep(frame);
      return true;
    },
    through: (chunk, from) => looker?.runOn.through(chunk, from) ?? from,
  });

  return {
    editor: toEditor,
    agent: toAgent,
    editorEnded: fromEditor.ended,
    agentEnded: fromAgent.ended,
    attach(given) {
      for (const { request, answer } of greetings) given.early(request, answer);
      const { frames, missed } = told.take();
      given.earlyTold(frames, missed);
      looker = given;
      fromEditor.release();
      fromAgent.release();
    },
  };
}

const DROPPED = () => {};

/** What has no effect and belongs to no request; the table judges all else, once it can be written down. */
function mayPassEarly(method: string): boolean {
  return method === 'session/update' || method.startsWith('_');
}

const MOST_EARLY = 256;
const MOST_EARLY_BYTES = 1024 * 1024;

/** What has gone on already, kept until it can be written down; an agent that says too much has most of it only counted. */
function createEarly() {
  const frames: Frame[] = [];
  let bytes = 0;
  let missed = 0;
  return {
    keep(frame: Frame): void {
      if (frames.length >= MOST_EARLY || bytes + frame.line.length > MOST_EARLY_BYTES) missed += 1;
      else {
        // The line is a part of what was read with it, which would be kept whole.
        frames.push({ ...frame, line: Buffer.from(frame.line) });
        bytes += frame.line.length;
      }
    },
    take: () => ({ frames: frames.splice(0), missed }),
  };
}

interface Side {
  readonly ended: Promise<Error | undefined>;
  /** There is room again where its lines go. */
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
  let end: (why: Error | undefined) => void = () => {};
  const ended = new Promise<Error | undefined>((resolve) => {
    end = resolve;
  });
  const pauseIfFull = () => {
    if (out.full) lines.pause();
  };
  function judged(frame: Frame, bytes: Buffer): LineVerdict {
    const verdict = look(frame);
    // A line that had to be written in another way goes on in that way.
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
