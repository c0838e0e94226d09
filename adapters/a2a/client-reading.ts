/**
 * What a peer says about its task, in our words: the pure middle of the backend. Text of an artifact is a message being
 * written, its files are files, its data is data. A snapshot after a gap says only what is new. Unknown states stay unknown.
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
import { EXTENSIONS, taskState } from '../../mappings/a2a.ts';
import type { Fact, Json, JsonObject, NewArtifact } from '../../src/index.ts';
import { asText } from '../../src/index.ts';
import { artifactKind } from './translate.ts';

export type Deed =
  | { readonly do: 'emit'; readonly fact: Fact }
  | { readonly do: 'keep'; readonly file: NewArtifact; readonly url?: string };

/** Where the peer's task is. */
export interface Standing {
  readonly taskId: string;
  readonly contextId: string;
  /** As it was said. */
  readonly wire: string;
  /** Ours, or undefined for a word nobody knows. */
  readonly state: string | undefined;
  readonly message: Message | undefined;
  /** Tells one question from the next. */
  readonly mark: string;
}

export interface Reading {
  take(said: StreamResponse): readonly Deed[];
  /** Nothing more comes: what was being written is whole now. */
  end(): readonly Deed[];
  readonly standing: Standing | undefined;
  /** The answer of a peer that made no task of it. */
  readonly bare: Message | undefined;
  readonly receiptId: string | undefined;
  /** Everything it gave, for a hash over it. */
  result(): Json;
}

interface Draft {
  text: string;
  readonly rest: JsonObject[];
  readonly name: string;
  /** How many file parts were kept. */
  files: number;
  count: number;
  whole: boolean;
}

export interface ReadingOptions {
  /** Our task, for names that are the same each time the same thing is told. */
  readonly taskId: string;
  readonly peer: string;
  /** False after a restart: what had been streamed before is not known, so only whole messages are told. */
  readonly deltas: boolean;
}

export function createReading({ taskId, peer, deltas }: ReadingOptions): Reading {
  const drafts = new Map<string, Draft>();
  const told = new Set<string>();
  let standing: Standing | undefined;
  let bare: Message | undefined;
  let receiptId: string | undefined;
  let marks = 0;
  let spoken = false;
  let last: Task | undefined;

  const nameIn = (id: string) => `${taskId}.${id.replace(/[^A-Za-z0-9_.-]/g, '_')}`.slice(0, 200);
  const about = (): JsonObject => ({
    a2a: { peer, ...(standing && { task_id: standing.taskId, context_id: standing.contextId }) },
  });

  function speak(id: string, parts: readonly JsonObject[]): Deed {
    spoken = true;
    const message = { id, object: 'message', role: 'assistant', parts, metadata: about() };
    return { do: 'emit', fact: { event: 'agent.message', payload: { message } } };
  }

  /** A message of the peer's that is not part of an artifact. Told once. */
  function said(message: Message | undefined): Deed[] {
    if (!message || message.role === Role.ROLE_USER || told.has(message.messageId)) return [];
    told.add(message.messageId);
    const parts = message.parts.flatMap(plainPart);
    const files = message.parts.flatMap((part) => fileDeed(part, 'file'));
    return parts.length > 0 ? [...files, speak(nameIn(message.messageId), parts)] : files;
  }

  function move(next: Omit<Standing, 'mark' | 'state'>, timestamp: string | undefined): void {
    if (!standing || standing.wire !== next.wire || standing.message?.messageId !== next.message?.messageId) marks += 1;
    const mark = next.message?.messageId || timestamp || asText(marks);
    const state =
      next.wire === 'UNRECOGNIZED' || next.wire === 'TASK_STATE_UNSPECIFIED' ? undefined : taskState.toCore(next.wire);
    standing = { ...next, mark, state };
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

  function add(artifact: Artifact, append: boolean): Deed[] {
    const draft = draftOf(artifact);
    const deeds: Deed[] = [];
    if (!append) {
      const { text, rest, files } = contentsOf(artifact);
      if (text.startsWith(draft.text)) deeds.push(...delta(artifact.artifactId, text.slice(draft.text.length)));
      draft.text = text;
      draft.rest.splice(0, draft.rest.length, ...rest);
      deeds.push(...files.slice(draft.files).flatMap((part) => fileDeed(part, artifact.name)));
      draft.files = Math.max(draft.files, files.length);
      return deeds;
    }
    const { text, rest, files } = contentsOf(artifact);
    draft.text += text;
    draft.rest.push(...rest);
    draft.files += files.length;
    return [...delta(artifact.artifactId, text), ...files.flatMap((part) => fileDeed(part, artifact.name))];
  }

  function delta(artifactId: string, text: string): Deed[] {
    if (text === '' || !deltas) return [];
    const payload = { message_id: nameIn(artifactId), role: 'assistant', text };
    return [{ do: 'emit', fact: { event: 'vendor.tollbridge.message_delta', payload } }];
  }

  function finish(artifactId: string): Deed[] {
    const draft = drafts.get(artifactId);
    if (!draft || draft.whole) return [];
    draft.whole = true;
    const words = draft.text === '' ? [] : [{ type: 'text', text: draft.text, visibility: 'public' }];
    const parts = [...words, ...draft.rest];
    return parts.length > 0 ? [speak(nameIn(artifactId), parts)] : [];
  }

  function snapshot(task: Task): Deed[] {
    last = task;
    learn(task.metadata);
    const deeds: Deed[] = [];
    for (const artifact of task.artifacts ?? [])
      if (!drafts.get(artifact.artifactId)?.whole) deeds.push(...add(artifact, false));
    move(
      { taskId: task.id, contextId: task.contextId, wire: wordOf(task.status?.state), message: task.status?.message },
      task.status?.timestamp,
    );
    return standing?.state === 'WORKING' ? [...deeds, ...said(task.status?.message)] : deeds;
  }

  function learn(metadata: Record<string, unknown> | undefined): void {
    const record = metadata?.[EXTENSIONS.record] as { receiptId?: unknown } | undefined;
    if (typeof record?.receiptId === 'string') receiptId = record.receiptId;
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
          return [...add(artifact, append), ...(lastChunk ? finish(artifact.artifactId) : [])];
        }
        default:
          return [];
      }
    },
    end() {
      const deeds = [...drafts.keys()].flatMap(finish);
      if (spoken || drafts.size > 0) return deeds;
      // Some say their answer only with the last state, or only in the history.
      const answer = standing?.state === 'COMPLETED' ? standing.message : undefined;
      const remembered = last?.history?.filter(({ role }) => role === Role.ROLE_AGENT).at(-1);
      return [...deeds, ...said(answer ?? remembered)];
    },
    get standing() {
      return standing;
    },
    get bare() {
      return bare;
    },
    get receiptId() {
      return receiptId;
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
  const text = parts.flatMap(({ content }) => (content?.$case === 'text' ? [content.value] : [])).join('');
  const rest = parts.filter(({ content }) => content?.$case === 'data').flatMap(plainPart);
  const files = parts.filter(({ content }) => content?.$case === 'raw' || content?.$case === 'url');
  return { text, rest, files };
}

function plainPart({ content }: Part): JsonObject[] {
  if (content?.$case === 'text' && content.value !== '')
    return [{ type: 'text', text: content.value, visibility: 'public' }];
  if (content?.$case === 'data')
    return [{ type: 'json', value: (content.value ?? null) as Json, visibility: 'public' }];
  return [];
}

function fileDeed({ content, mediaType, filename }: Part, name: string): Deed[] {
  const mime_type = mediaType || 'application/octet-stream';
  const file = { kind: artifactKind(mime_type), name: filename || name || 'file', mime_type };
  if (content?.$case === 'raw') return [{ do: 'keep', file: { ...file, bytes: content.value } }];
  if (content?.$case === 'url') return [{ do: 'keep', file: { ...file, uri: content.value }, url: content.value }];
  return [];
}

/** The words of a message, for summaries and questions. */
export function wordsOf(message: Message | undefined): string | undefined {
  const words = message?.parts.flatMap(({ content }) => (content?.$case === 'text' ? [content.value] : [])).join('\n');
  return words || undefined;
}

/** What a gateway like ours calls the failure its last message is about. */
export function failureCode(message: Message | undefined): string | undefined {
  const record = message?.metadata?.[EXTENSIONS.record] as { code?: unknown } | undefined;
  return typeof record?.code === 'string' ? record.code : undefined;
}
