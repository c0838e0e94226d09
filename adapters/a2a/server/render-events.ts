/**
 * Renders a task for a peer from its view: the same view yields the snapshot and the stream, so the two cannot disagree.
 * Private details (persona, workspace, decisions, calls) are left out unless they were requested.
 */

import {
  type Artifact,
  type Message,
  type Part,
  Role,
  type StreamResponse,
  type Task,
  type TaskStatus,
} from '@a2a-js/sdk';
import { ACTIVITY, EXTENSIONS, NOT_SENT } from '../../../mappings/a2a.ts';
import {
  type ArtifactPayload,
  type AskRecord,
  asText,
  type CoreEvent,
  emptyTaskView,
  evolve,
  isTaskEvent,
  isTerminal,
  isWaiting,
  type Json,
  type JsonObject,
  leftOut,
  type MessagePayload,
  type Part as OurPart,
  type Task as OurTask,
  withMembers,
} from '../../../src/index.ts';
import { type TraceMembers, taskTrace } from '../../../src/transport/outbound/trace-context.ts';
import { type ArtifactContent, filePart, textPart, toWireParts, toWireState, wireMessage } from '../translate.ts';
import { toWireAnswer, toWireQuestion } from './questions.ts';

export type Update = NonNullable<StreamResponse['payload']>;

export interface ProjectionOptions {
  /** The peer's context id. */
  readonly contextId: string;
  /** The reader also requested calls, plans and costs. */
  readonly activity?: boolean;
  /** No stream is open: only the state of the task matters, and no updates are built. */
  readonly quiet?: boolean;
  /**
   * The reader joins pieces of text itself, as the protocol has it. Others are sent a text once, when it is whole: some clients
   * join all updates, some keep only the last one, and one whole update is the same for both.
   */
  readonly pieces?: boolean;
  /** The answers that the reader may give, and how its questions are put. */
  readonly answering: ReaderAnswers;
  /** Why the task has not begun, where another task in its context waits for an answer. */
  readonly queued?: string | undefined;
  /** The URL of a file that is not sent inside a message. */
  link(artifactId: string): string;
}

export interface ReaderAnswers {
  may(ask: AskRecord, task: OurTask): boolean;
  /** A text of yes or no is an answer to an approval. */
  readonly texts: boolean;
  /** A task that waits for the reader is in INPUT_REQUIRED, and one that waits for others in AUTH_REQUIRED. */
  readonly byReader: boolean;
}

export interface TaskProjection {
  /** The artifact id, if this event is about a file whose bytes are needed. */
  wants(event: CoreEvent): string | undefined;
  /** Applies an event; returns the updates for a stream. */
  take(event: CoreEvent, content?: ArtifactContent): readonly Update[];
  snapshot(view?: { readonly historyLength?: number | undefined; readonly artifacts?: boolean }): Task;
  /** The canonical status as the reader is told; undefined before the task was submitted. */
  readonly status: string | undefined;
  readonly ended: boolean;
  /** The task needs an answer before it continues. */
  readonly waiting: boolean;
  readonly cursor: string | undefined;
  /** The trace the task belongs to. */
  readonly trace: TraceMembers;
  /** The whole answer, when the agent reports that it was a message and no work. */
  readonly reply: Message | undefined;
}

/** Artifacts larger than this are linked. */
export const INLINE_BYTES = 256 * 1024;
const NONE: readonly Update[] = [];
const isActivity = (kind: string): kind is (typeof ACTIVITY)[number] => (ACTIVITY as readonly string[]).includes(kind);

export function createProjection(options: ProjectionOptions): TaskProjection {
  const { contextId, activity = false, quiet = false, pieces = false, answering, queued, link } = options;
  const view = emptyTaskView('open');
  let status: TaskStatus | undefined;
  let answered = false;
  const history: Message[] = [];
  /** In the order in which they were begun; undefined for a message still being written, whose text is in the view. */
  const artifacts = new Map<string, Artifact | undefined>();
  const files = new Map<string, Part>();
  const record: Record<string, string> = {};

  const taskIds = () => ({ taskId: view.task?.id ?? '', contextId });
  const fileOf = (id: string) => files.get(id) ?? filePart({ mime_type: '', metadata: {} }, { url: link(id) });
  const soFar = (id: string) => response(id, [textPart(view.messages.get(id)?.written ?? '')]);

  function statusUpdate(metadata?: JsonObject): Update {
    return { $case: 'statusUpdate', value: { ...taskIds(), status, metadata } };
  }

  function artifactUpdate(artifact: Artifact, append: boolean, lastChunk: boolean): Update {
    return { $case: 'artifactUpdate', value: { ...taskIds(), artifact, append, lastChunk, metadata: undefined } };
  }

  function moveTo(event: CoreEvent, message?: Message): readonly Update[] {
    status = { state: toWireState(shownStatus() ?? '', view.task), message, timestamp: event.created_at };
    return quiet ? NONE : [statusUpdate()];
  }

  const may = (ask: AskRecord) => answering.may(ask, view.task as OurTask);

  /** Clients end their turn at INPUT_REQUIRED and wait at AUTH_REQUIRED: so the first is for a reader that has to answer. */
  function shownStatus(): string | undefined {
    const real = view.task?.status;
    if (!answering.byReader || !isWaiting(view) || view.questions.size === 0) return real;
    return [...view.questions.values()].some(may) ? 'INPUT_REQUIRED' : 'AUTH_REQUIRED';
  }

  function question(event: CoreEvent): Message | undefined {
    if (view.questions.size === 0) return undefined;
    const ids = { messageId: `question-${event.id}`, ...taskIds() };
    return toWireQuestion([...view.questions.values()], ids, { may, texts: answering.texts });
  }

  function transition(event: CoreEvent, task: OurTask): readonly Update[] {
    switch (event.event) {
      case 'task.submitted':
        opened(task);
        moveTo(
          event,
          queued
            ? wireMessage({ messageId: `queued-${event.id}`, parts: [textPart(queued)], ...taskIds() })
            : undefined,
        );
        return quiet ? NONE : [{ $case: 'task', value: snapshot() }];
      case 'task.input_required':
      case 'task.auth_required': {
        const asked = question(event);
        if (asked) history.push(asked);
        return moveTo(event, asked);
      }
      case 'task.completed':
      case 'task.failed':
      case 'task.canceled':
        return end(event, task);
      default:
        return moveTo(event);
    }
  }

  /** The opening message precedes the task: only now is its sender's id for it known. */
  function opened({ id, metadata }: OurTask): void {
    const first = history.at(-1);
    const { a2a } = metadata as { a2a?: { message_id?: string; message_metadata?: JsonObject } };
    if (!first || first.role !== Role.ROLE_USER) return;
    history[history.length - 1] = {
      ...first,
      taskId: id,
      messageId: a2a?.message_id ?? first.messageId,
      metadata: a2a?.message_metadata ?? first.metadata,
    };
  }

  function end(event: CoreEvent, { receipt_id, outcome_id, failure }: OurTask): readonly Update[] {
    const closing = closeUnfinished();
    if (receipt_id) record.receiptId = receipt_id;
    if (outcome_id) record.outcomeId = outcome_id;
    const { outcome } = view;
    if (outcome?.metrics?.reply === 'message') {
      projection.reply = history.findLast(({ role }) => role === Role.ROLE_AGENT);
    }
    moveTo(event, event.event === 'task.completed' && !isWordless() ? undefined : lastWords(event, failure));
    return quiet ? NONE : [...closing, statusUpdate({ [EXTENSIONS.record]: { ...record } })];
  }

  /** The agent gave no answer but the words it ended with; `completed` is core's word, not the agent's. */
  function isWordless(): boolean {
    return artifacts.size === 0 && view.outcome?.summary !== 'completed';
  }

  /** Why work was not completed. Clients take the message of completed work for its answer, and the artifacts are that. */
  function lastWords({ id }: CoreEvent, failure: OurTask['failure']): Message | undefined {
    const words = failure?.message || view.outcome?.summary;
    const metadata = failure ? { [EXTENSIONS.record]: { code: failure.code } } : undefined;
    return words
      ? wireMessage({ messageId: `end-${id}`, parts: [textPart(words)], metadata, ...taskIds() })
      : undefined;
  }

  /** Messages that nobody writes on: the text they have is all there is. */
  function closeUnfinished(): readonly Update[] {
    const closing: Update[] = [];
    for (const [id, artifact] of artifacts) {
      if (artifact) continue;
      const text = soFar(id);
      artifacts.set(id, text);
      if (!quiet) closing.push(pieces ? close(id) : artifactUpdate(text, false, true));
    }
    return closing;
  }

  /** The end of a text sent in pieces: it only marks the text as complete. */
  function close(id: string): Update {
    return artifactUpdate(response(id, [textPart('')]), true, true);
  }

  function delta({ message_id, text }: JsonObject): readonly Update[] {
    const id = asText(message_id);
    if (text === '' || typeof text !== 'string') return NONE;
    const begun = artifacts.has(id);
    if (!begun) artifacts.set(id, undefined);
    return pieces && !quiet ? [artifactUpdate(response(id, [textPart(text)]), begun, false)] : NONE;
  }

  function message({ message: said }: MessagePayload): readonly Update[] {
    if (said.role === 'system' || said.role === 'tool') return NONE;
    const parts = toWireParts(said.parts, fileOf);
    if (parts.length === 0) return NONE;
    const theirs = said.role === 'user';
    const { a2a } = said.metadata as { a2a?: { message_id?: string; message_metadata?: JsonObject } };
    const ids = { messageId: a2a?.message_id ?? said.id, metadata: a2a?.message_metadata, ...taskIds() };
    history.push(wireMessage({ parts, ...ids, taskId: said.task_id ?? ids.taskId }, theirs ? 'user' : 'agent'));
    return theirs ? NONE : whole(said.id, parts);
  }

  function whole(id: string, parts: Part[]): readonly Update[] {
    const streamed = pieces && artifacts.has(id) ? view.messages.get(id)?.written : undefined;
    const artifact = response(id, parts);
    artifacts.set(id, artifact);
    if (quiet) return NONE;
    const [first] = parts;
    const same = first?.content?.$case === 'text' && first.content.value === streamed;
    if (!same) return [artifactUpdate(artifact, false, true)];
    return parts.length === 1 ? [close(id)] : [artifactUpdate(response(id, parts.slice(1)), true, true)];
  }

  function file(event: CoreEvent, content: ArtifactContent): readonly Update[] {
    const { artifact } = event.payload as ArtifactPayload;
    if (artifact.visibility !== 'public') return activity && isInside(artifact) ? [kept(event, content)] : NONE;
    const part = filePart(artifact, artifact.uri && !content.bytes ? { url: artifact.uri } : content);
    // Content that was stored separately only because of its length belongs to its message.
    if (artifact.metadata.spilled) {
      files.set(artifact.id, (content.bytes && spilledPart(content.bytes)) ?? part);
      return NONE;
    }
    files.set(artifact.id, part);
    const name = typeof artifact.metadata.name === 'string' ? artifact.metadata.name : artifact.kind;
    const about = { kind: artifact.kind, ...(artifact.sha256 && { sha256: artifact.sha256 }) };
    const made: Artifact = {
      artifactId: artifact.id,
      name,
      description: '',
      parts: [part],
      metadata: { [EXTENSIONS.record]: about },
      extensions: [],
    };
    artifacts.set(artifact.id, made);
    return [artifactUpdate(made, false, true)];
  }

  /** A question was opened or closed while the task was already waiting. */
  function asking(event: CoreEvent): readonly Update[] {
    return isWaiting(view) ? moveTo(event, question(event)) : NONE;
  }

  function render(event: CoreEvent, content: ArtifactContent, ask: AskRecord | undefined): readonly Update[] {
    const { payload } = event;
    switch (event.event) {
      case 'user.message':
        answered = payload.kind === 'input' || payload.kind === 'tool_confirmation';
        return message(payload as MessagePayload);
      case 'agent.message':
        return message(payload as MessagePayload);
      case 'vendor.tollbridge.message_delta':
        return delta(payload);
      case 'artifact.created':
        return file(event, content);
      case 'vendor.tollbridge.ask_opened':
      case 'vendor.tollbridge.ask_closed':
        return asking(event);
      case 'user.input_submitted':
      case 'user.tool_confirmation':
        // The history already contains the message that carried the answer.
        if (!answered) history.push(toWireAnswer(ask, payload, taskIds()));
        answered = false;
        return NONE;
      default:
        if (isTaskEvent(event.event)) return payload.task ? transition(event, view.task as OurTask) : NONE;
        if (isActivity(event.event)) return activity ? [rendered(event)] : NONE;
        return leftOut(NOT_SENT, event.event);
    }
  }

  function rendered({ event, id, created_at, payload }: CoreEvent): Update {
    return statusUpdate({ [EXTENSIONS.activity]: { event, cursor: id, at: created_at, payload } });
  }

  /** A file the agent did not publish, such as a change it made: no result, but part of its activity. */
  function kept(event: CoreEvent, { bytes }: ArtifactContent): Update {
    const { artifact } = event.payload as ArtifactPayload;
    const { id, kind, mime_type, sha256, metadata } = artifact;
    const about = { id, kind, mime_type, sha256, name: metadata.name ?? null } as JsonObject;
    const inside = bytes && mime_type === 'application/json' ? jsonOf(bytes) : undefined;
    return rendered(withMembers(event, { artifact: about, ...(inside !== undefined && { content: inside }) }));
  }

  function snapshot({ historyLength, artifacts: shown = true }: Parameters<TaskProjection['snapshot']>[0] = {}): Task {
    const kept = historyLength === undefined ? history : historyLength === 0 ? [] : history.slice(-historyLength);
    return {
      id: view.task?.id ?? '',
      contextId,
      status,
      artifacts: shown
        ? [...artifacts].flatMap(([id, artifact]) => artifact ?? (pieces || quiet ? soFar(id) : []))
        : [],
      history: [...kept],
      metadata: { [EXTENSIONS.record]: { sessionId: view.task?.session_id ?? null, ...record } },
    };
  }

  // Updated with each event: computing these members on access costs every send several microseconds.
  const projection: Writable<TaskProjection> = {
    status: undefined,
    ended: false,
    waiting: false,
    cursor: undefined,
    get trace() {
      return view.task ? taskTrace(view.task) : {};
    },
    reply: undefined,
    wants({ event, payload }) {
      if (event !== 'artifact.created') return undefined;
      const { artifact } = payload as ArtifactPayload;
      const small = typeof artifact.metadata.bytes === 'number' && artifact.metadata.bytes <= INLINE_BYTES;
      const shown = artifact.visibility === 'public' || (activity && isInside(artifact));
      return shown && small ? artifact.id : undefined;
    },
    take(event, content) {
      const { artifact, ask_id } = event.payload as { artifact?: { id?: string }; ask_id?: string };
      evolve(view, event);
      const ask = view.questions.get(asText(ask_id));
      const rendered = render(event, content ?? (artifact?.id ? { url: link(artifact.id) } : {}), ask);
      const status = view.task?.status;
      projection.ended = status !== undefined && isTerminal(status);
      projection.waiting = isWaiting(view);
      projection.status = projection.waiting ? shownStatus() : status;
      projection.cursor = event.id;
      return rendered;
    },
    snapshot,
  };
  return projection;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** An artifact the agent did not publish. Content stored separately only because of its length is not a file. */
function isInside({ visibility, metadata }: ArtifactPayload['artifact']): boolean {
  return visibility === 'internal' && !metadata.spilled;
}

/** A part of a message that was stored separately: its bytes are the part itself. */
function spilledPart(bytes: Uint8Array): Part | undefined {
  const part = jsonOf(bytes);
  return part === undefined ? undefined : toWireParts([part as OurPart], () => undefined)[0];
}

function jsonOf(bytes: Uint8Array): Json | undefined {
  try {
    return JSON.parse(Buffer.from(bytes).toString('utf8')) as Json;
  } catch {
    return undefined;
  }
}

function response(id: string, parts: Part[]): Artifact {
  return { artifactId: id, name: 'response', description: '', parts, metadata: undefined, extensions: [] };
}
