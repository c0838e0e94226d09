/** The changes of files in a session, read from its events: the log has each write's hashes, and the arguments of the call that wrote. Pure. */
import { fileDiff } from '../../inbox/file-diff.ts';
import { bag, type LogEvent, str } from './rows.ts';

export interface WrittenFile {
  /** The event that says the file was written. */
  readonly event: string;
  readonly path: string;
  readonly operation: string;
  readonly evidence: string;
  /** Undefined where the log does not have the content. */
  readonly change: { readonly what: string; readonly text: string } | undefined;
}

/** Longer texts are not compared in the page. */
const LONGEST = 500_000;

export function writtenFiles(events: readonly LogEvent[]): readonly WrittenFile[] {
  const calls = new Map<string, Readonly<Record<string, unknown>>[]>();
  /** What the file held after the last write that is on record. */
  const held = new Map<string, string>();
  for (const { event, payload } of events) {
    if (!event.startsWith('tool.')) continue;
    const call = str(payload.tool_call_id);
    const said = [bag(payload.input), ...blocksIn(payload.output)];
    calls.set(call, [...(calls.get(call) ?? []), ...said]);
  }
  return events.flatMap(({ id, event, payload }) => {
    if (event !== 'vendor.tollbridge.side_effect' || !str(payload.type).startsWith('fs')) return [];
    const path = str(payload.path);
    const { before, after } = textsFor(path, calls.get(str(payload.tool_call_id)) ?? []);
    const earlier = before ?? held.get(path) ?? (payload.operation === 'create' ? null : undefined);
    // A part that was replaced says nothing of the rest of the file.
    if (after !== undefined && before === undefined) held.set(path, after);
    const change =
      after === undefined || after.length > LONGEST
        ? undefined
        : fileDiff({ path, after, ...(earlier !== undefined && { before: earlier }) });
    const { operation, evidence } = payload;
    return [{ event: id, path, operation: str(operation), evidence: str(evidence), change: reworded(change) }];
  });
}

/** The words of a question are about the future; this has happened. */
function reworded(change: WrittenFile['change']): WrittenFile['change'] {
  return change && { ...change, what: change.what.replace('would hold', 'held then') };
}

/** Blocks of content in a result, among them changes as editors report them. */
function blocksIn(output: unknown): readonly Readonly<Record<string, unknown>>[] {
  const content = Array.isArray(output) ? output : bag(output).content;
  return Array.isArray(content) ? content.map(bag) : [];
}

/** Members in which clients and tools carry the text of a file, before and after. */
const BEFORE = ['oldText', 'old_text', 'old_string'];
const AFTER = ['newText', 'new_text', 'new_string', 'content', 'text'];

function textsFor(path: string, said: readonly Readonly<Record<string, unknown>>[]) {
  for (const one of said) {
    const named = str(one.path) || str(one.file_path) || str(one.name);
    if (named && !path.endsWith(named) && !named.endsWith(path)) continue;
    const text = (names: readonly string[]) =>
      names.map((name) => one[name]).find((value) => typeof value === 'string');
    const after = text(AFTER) as string | undefined;
    if (after !== undefined) return { before: text(BEFORE) as string | undefined, after };
  }
  return { before: undefined, after: undefined };
}
