/**
 * Turns a peer's updates of its task into our facts, without side effects. Text of an artifact is a message being written, its
 * files are files, its data is data. A snapshot after a gap yields only what is new. Unknown states stay unknown.
 */

import {
  type Artifact,
  type Message,
  type Part,
  Role,
  type StreamResponse,
  type Task,
  taskStateToJSON,
} from '@a2a-js/sdk';
import { EXTENSIONS, taskState } from '../../../mappings/a2a.ts';
import type { Fact, Json, JsonObject, NewArtifact } from '../../../src/index.ts';
import { asText, isTerminal } from '../../../src/index.ts';
import { claimedReceipt, type RemoteReceipt } from '../../../src/transport/outbound/remote-work.ts';
import { artifactKind } from '../translate.ts';

export type ReadStep =
  | { readonly do: 'emit'; readonly fact: Fact }
  | { readonly do: 'keep'; readonly file: NewArtifact; readonly url?: string };

/** The state of the peer's task. */
export interface Standing {
  readonly taskId: string;
  readonly contextId: string;
  /** As received. */
  readonly wire: string;
  /** The canonical state; undefined for an unknown word. */
  readonly state: string | undefined;
  readonly message: Message | undefined;
  /** Distinguishes one question from the next. */
  readonly mark: string;
}

export interface UpdateReader {
  take(said: StreamResponse): readonly ReadStep[];
  /** No update follows: messages being written are now complete. */
  end(): readonly ReadStep[];
  readonly standing: Standing | undefined;
  /** The answer of a peer that created no task. */
  readonly bare: Message | undefined;
  /** The peer's receipt, as far as it reports one. */
  readonly receipt: RemoteReceipt | undefined;
  /** All results, for a hash over them. */
  result(): Json;
}

interface Draft {
  text: string;
  readonly rest: JsonObject[];
  readonly name: string;
  /** How many file parts were stored. */
  files: number;
  count: number;
  whole: boolean;
}

interface UpdateReaderOptions {
  /** Our task id, from which stable ids are made for repeated updates. */
  readonly taskId: string;
  readonly peer: string;
  /** Which of the peer's addresses has the work, where there are several. */
  readonly address?: number | undefined;
  /** False after a restart: the text streamed before it is unknown, so only whole messages are recorded. */
  readonly deltas: boolean;
}

export function createUpdateReader({ taskId, peer, address, deltas }: UpdateReaderOptions): UpdateReader {
  const drafts = new Map<string, Draft>();
  const seen = new Set<string>();
  /** Texts of messages beside artifacts: some peers send their answer as a message first and then as an artifact. */
  const texts: string[] = [];
  let standing: Standing | undefined;
  let bare: Message | undefined;
  let receipt: RemoteReceipt | undefined;
  let marks = 0;
  let spoken = false;
  let last: Task | undefined;

  const nameIn = (id: string) => `${taskId}.${id.replace(/[^A-Za-z0-9_.-]/g, '_')}`.slice(0, 200);
  const about = (): JsonObject => ({
    a2a: {
      peer,
      ...(address !== undefined && { address }),
      ...(standing && { task_id: standing.taskId, context_id: standing.contextId }),
    },
  });

  function speak(id: string, parts: readonly JsonObject[]): ReadStep {
    spoken = true;
    const message = { id, object: 'message', role: 'assistant', parts, metadata: about() };
    return { do: 'emit', fact: { event: 'agent.message', payload: { message } } };
  }

  /** A message of the peer that is not part of an artifact. Recorded once. */
  function said(message: Message | undefined): ReadStep[] {
    if (!message || message.role === Role.ROLE_USER || seen.has(message.messageId)) return [];
    seen.add(message.messageId);
    const text = textsIn(message.parts);
    if (text !== '') texts.push(text);
    const parts = message.parts.flatMap(plainPart);
    const files = message.parts.flatMap((part) => fileStep(part, 'file'));
    return parts.length > 0 ? [...files, speak(nameIn(message.messageId), parts)] : files;
  }

  function move(next: Omit<Standing, 'mark' | 'state'>, timestamp: string | undefined): void {
    if (!standing || standing.wire !== next.wire || standing.message?.messageId !== next.message?.messageId) marks += 1;
    const mark = next.message?.messageId || timestamp || asText(marks);
    const state =
      next.wire === 'UNRECOGNIZED' || next.wire === 'TASK_STATE_UNSPECIFIED' ? undefined : taskState.toCore(next.wire);
    // The task id never changes: an answer, a poll or a cancel must not go to another task because a later frame names one.
    standing = { ...next, taskId: standing?.taskId || next.taskId, mark, state };
  }

  function draftOf({ artifactId, name }: Artifact): Draft {
    const known = drafts.get(artifactId) ?? {
      text: '',
      rest: [],
      name,
      files: 0,
      count: drafts.size + 1,
      whole: false,
    };
    drafts.set(artifactId, known);
    return known;
  }

  /** Whether the text of this artifact was recorded already, as one message or as several. */
  function repeats({ artifactId, parts }: Artifact): boolean {
    const text = textsIn(parts);
    if (text === '' || drafts.has(artifactId)) return false;
    return texts.includes(text) || texts.join('') === text || texts.join('\n') === text;
  }

  function add(artifact: Artifact, append: boolean, complete: boolean): ReadStep[] {
    const repeated = complete && repeats(artifact);
    const draft = draftOf(artifact);
    if (repeated) {
      draft.whole = true;
      draft.text = textsIn(artifact.parts);
      const { files } = contentsOf(artifact);
      draft.files = files.length;
      return files.flatMap((part) => fileStep(part, artifact.name));
    }
    const steps: ReadStep[] = [];
    if (!append) {
      const { text, rest, files } = contentsOf(artifact);
      if (text.startsWith(draft.text)) steps.push(...delta(artifact.artifactId, text.slice(draft.text.length)));
      draft.text = text;
      draft.rest.splice(0, draft.rest.length, ...rest);
      steps.push(...files.slice(draft.files).flatMap((part) => fileStep(part, artifact.name)));
      draft.files = Math.max(draft.files, files.length);
      return steps;
    }
    const { text, rest, files } = contentsOf(artifact);
    draft.text += text;
    draft.rest.push(...rest);
    draft.files += files.length;
    return [...delta(artifact.artifactId, text), ...files.flatMap((part) => fileStep(part, artifact.name))];
  }

  function delta(artifactId: string, text: string): ReadStep[] {
    if (text === '' || !deltas) return [];
    const payload = { message_id: nameIn(artifactId), role: 'assistant', text };
    return [{ do: 'emit', fact: { event: 'vendor.tollbridge.message_delta', payload } }];
  }

  function finish(artifactId: string): ReadStep[] {
    const draft = drafts.get(artifactId);
    if (!draft || draft.whole) return [];
    draft.whole = true;
    const words = draft.text === '' ? [] : [{ type: 'text', text: draft.text, visibility: 'public' }];
    const parts = [...words, ...draft.rest];
    return parts.length > 0 ? [speak(nameIn(artifactId), parts)] : [];
  }

  function snapshot(task: Task): ReadStep[] {
    last = task;
    learn(task.metadata);
    const steps: ReadStep[] = [];
    const over = isTerminal(taskState.toCore(wordOf(task.status?.state)) ?? '');
    for (const artifact of task.artifacts ?? [])
      if (!drafts.get(artifact.artifactId)?.whole) steps.push(...add(artifact, false, over));
    move(
      { taskId: task.id, contextId: task.contextId, wire: wordOf(task.status?.state), message: task.status?.message },
      task.status?.timestamp,
    );
    return standing?.state === 'WORKING' ? [...steps, ...said(task.status?.message)] : steps;
  }

  function learn(metadata: Record<string, unknown> | undefined): void {
    const { receiptId, receiptHash, issuer, keyId, holds } = (metadata?.[EXTENSIONS.record] ?? {}) as JsonObject;
    const said = { receipt_id: receiptId, receipt_hash: receiptHash, issuer, key_id: keyId, holds };
    receipt = claimedReceipt(said) ?? receipt;
  }

  return {
    take({ payload }) {
      switch (payload?.$case) {
        case 'task':
          return snapshot(payload.value);
        case 'message':
          bare = payload.value;
          return said(payload.value);
        case 'statusUpdate': {
          const { taskId: id, contextId, status } = payload.value;
          learn(payload.value.metadata);
          move({ taskId: id, contextId, wire: wordOf(status?.state), message: status?.message }, status?.timestamp);
          return standing?.state === 'WORKING' ? said(status?.message) : [];
        }
        case 'artifactUpdate': {
          const { artifact, append, lastChunk } = payload.value;
          if (!artifact) return [];
          return [...add(artifact, append, lastChunk), ...(lastChunk ? finish(artifact.artifactId) : [])];
        }
        default:
          return [];
      }
    },
    end() {
      const steps = [...drafts.keys()].flatMap(finish);
      if (spoken || drafts.size > 0) return steps;
      // Some peers send their answer only with the last state, or only in the history.
      if (standing?.state !== 'COMPLETED') return steps;
      const remembered = last?.history?.filter(({ role }) => role === Role.ROLE_AGENT).at(-1);
      return [...steps, ...said(standing.message ?? remembered)];
    },
    get standing() {
      return standing;
    },
    get bare() {
      return bare;
    },
    get receipt() {
      return receipt;
    },
    result() {
      const artifacts = [...drafts].map(([id, { text, rest, files }]) => ({ id, text, rest, files }));
      return { artifacts, state: standing?.wire ?? null, message: wordsOf(bare ?? standing?.message) ?? null } as Json;
    },
  };
}

function wordOf(state: number | undefined): string {
  return taskStateToJSON(state ?? 0);
}

function contentsOf({ parts }: Artifact): { text: string; rest: JsonObject[]; files: Part[] } {
  const text = textsIn(parts);
  const rest = parts.filter(({ content }) => content?.$case === 'data').flatMap(plainPart);
  const files = parts.filter(({ content }) => content?.$case === 'raw' || content?.$case === 'url');
  return { text, rest, files };
}

function textsIn(parts: readonly Part[]): string {
  return parts.flatMap(({ content }) => (content?.$case === 'text' ? [content.value] : [])).join('');
}

function plainPart({ content }: Part): JsonObject[] {
  if (content?.$case === 'text' && content.value !== '')
    return [{ type: 'text', text: content.value, visibility: 'public' }];
  if (content?.$case === 'data')
    return [{ type: 'json', value: (content.value ?? null) as Json, visibility: 'public' }];
  return [];
}

function fileStep({ content, mediaType, filename }: Part, name: string): ReadStep[] {
  const mime_type = mediaType || 'application/octet-stream';
  const file = { kind: artifactKind(mime_type), name: filename || name || 'file', mime_type };
  if (content?.$case === 'raw') return [{ do: 'keep', file: { ...file, bytes: content.value } }];
  if (content?.$case === 'url') return [{ do: 'keep', file: { ...file, uri: content.value }, url: content.value }];
  return [];
}

/** The text of a message, for summaries and questions. */
export function wordsOf(message: Message | undefined): string | undefined {
  const words = message?.parts.flatMap(({ content }) => (content?.$case === 'text' ? [content.value] : [])).join('\n');
  return words || undefined;
}

/** The failure code that another Tollbridge gateway puts into its last message. */
export function failureCode(message: Message | undefined): string | undefined {
  const record = message?.metadata?.[EXTENSIONS.record] as { code?: unknown } | undefined;
  return typeof record?.code === 'string' ? record.code : undefined;
}
