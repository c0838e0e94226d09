/** The demo agent's tools: a box of notes and an outbox, both in memory. Nothing here reaches outside the process. */

import { createHash } from 'node:crypto';
import type { Action, SideEffect, ToolResult } from '../model/actions.ts';
import type { Skill } from '../model/resources.ts';
import type { JsonObject } from '../model/schema.ts';
import { own } from '../model/values/own.ts';
import type { Effect } from '../model/words.ts';
import type { ToolBackend } from '../ports/index.ts';

export interface DemoToolsDeps {
  readonly name?: string;
  readonly notes?: Readonly<Record<string, string>>;
  /** Called for every effect as it happens, one line each, so that effects can be counted. */
  journal?(line: string): void | Promise<void>;
  /** Waits before a call has its effect; the call can be stopped until then. Absent: calls take no time. */
  pause?(signal: AbortSignal): Promise<void>;
}

export interface DemoTools extends ToolBackend {
  readonly notes: ReadonlyMap<string, string>;
  readonly outbox: readonly { readonly to: string; readonly text: string }[];
}

const NOTES = {
  plan: 'First look, then leap.',
  todo: 'Water the plants. Call Ana.',
  readme: 'These notes live in memory and are gone with the process.',
};

interface DemoTool {
  readonly effect: Effect;
  readonly description: string;
  readonly arguments: Readonly<Record<string, string>>;
}

const TOOLS: ReadonlyMap<string, DemoTool> = new Map(
  Object.entries({
    read_note: { effect: 'read', description: 'Reads a note.', arguments: { name: 'the note' } },
    write_note: {
      effect: 'write',
      description: 'Writes a note, or writes over it.',
      arguments: { name: 'the note', text: 'what it should say' },
    },
    delete_note: { effect: 'delete', description: 'Deletes a note.', arguments: { name: 'the note' } },
    send_mail: {
      effect: 'send',
      description: 'Puts a mail into the outbox.',
      arguments: { to: 'who gets it', text: 'what it says' },
    },
  }),
);

/** Timestamp of the definitions; they do not change while the process runs. */
const SINCE = '2026-01-01T00:00:00.000Z';

const SKILLS: readonly Skill[] = [...TOOLS].map(([name, tool]) => ({
  id: `skill_demo_${name}`,
  object: 'skill',
  created_at: SINCE,
  updated_at: SINCE,
  metadata: { annotations: { effect: tool.effect } },
  name,
  description: tool.description,
  input_schema: {
    type: 'object',
    properties: Object.fromEntries(
      Object.entries(tool.arguments).map(([key, description]) => [key, { type: 'string', description }]),
    ),
    required: Object.keys(tool.arguments),
  },
  output_schema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
  source: 'demo',
  version: '1',
  requires_approval: tool.effect === 'send' || tool.effect === 'delete',
}));

export function createDemoTools(deps: DemoToolsDeps = {}): DemoTools {
  const { name = 'demo', notes: initial = NOTES, journal } = deps;
  const notes = new Map(Object.entries(initial));
  const outbox: { to: string; text: string }[] = [];

  /** Written at the moment of the effect: a line means that the effect happened. */
  const happened = async (action: Action): Promise<void> => {
    await journal?.(`${action.tool} ${action.tool_call_id ?? action.id} ${JSON.stringify(action.arguments)}`);
  };

  const run: Readonly<Record<string, (args: Arguments, action: Action) => Promise<ToolResult>>> = {
    async read_note({ name: note }) {
      const text = notes.get(note);
      return text === undefined ? failed(`there is no note called ${note}`) : done({ text: `${note} says: ${text}` });
    },
    async write_note({ name: note, text }, action) {
      const before = notes.get(note);
      notes.set(note, text);
      await happened(action);
      const operation = before === undefined ? 'create' : 'modify';
      return done({ text: `${note} is written.` }, [change(note, operation, before, text)]);
    },
    async delete_note({ name: note }, action) {
      const before = notes.get(note);
      if (before === undefined) return failed(`there is no note called ${note}`);
      notes.delete(note);
      await happened(action);
      return done({ text: `${note} is deleted.` }, [change(note, 'delete', before, undefined)]);
    },
    async send_mail({ to, text }, action) {
      outbox.push({ to, text });
      await happened(action);
      const bytes_sent = Buffer.byteLength(text);
      return done({ text: `Mail to ${to} is sent.`, to }, [
        { type: 'network', destination: 'outbox.demo.invalid', purpose: `mail to ${to}`, bytes_sent },
      ]);
    },
  };

  return {
    name,
    notes,
    outbox,
    list: async () => SKILLS,
    effect: (tool) => TOOLS.get(tool)?.effect,
    async call(action, signal) {
      const tool = TOOLS.get(action.tool ?? '');
      const act = tool && own(run, action.tool ?? '');
      if (!tool || !act) return failed(`there is no tool called ${action.tool}`);
      const missing = Object.keys(tool.arguments).find((key) => typeof own(action.arguments, key) !== 'string');
      if (missing) return failed(`${missing} is missing: ${tool.arguments[missing]}`);
      if (!signal.aborted) await deps.pause?.(signal);
      if (signal.aborted) return { ...failed('stopped before it ran'), code: 'canceled' };
      return await act(action.arguments as Arguments, action);
    },
  };
}

type Arguments = { readonly name: string; readonly text: string; readonly to: string };

function done(output: JsonObject, effects?: readonly SideEffect[]): ToolResult {
  return { status: 'ok', output, ...(effects && { effects }) };
}

function failed(error: string): ToolResult {
  return { status: 'error', output: null, error };
}

function change(
  note: string,
  operation: 'create' | 'modify' | 'delete',
  before: string | undefined,
  after: string | undefined,
): SideEffect {
  return {
    type: 'fs_write',
    path: `notes/${note}`,
    operation,
    before_sha256: hash(before),
    after_sha256: hash(after),
  };
}

function hash(text: string | undefined): string | null {
  return text === undefined ? null : `sha256:${createHash('sha256').update(text).digest('hex')}`;
}
