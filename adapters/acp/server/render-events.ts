/**
 * Renders events as updates for an editor: one renderer per viewer, fed in the order of the log, with one view for each task at
 * work. Remembers which messages were sent in pieces, so that nothing is sent twice. Reads artifacts and changes nothing.
 */

import { NOT_UPDATED, UPDATES } from '../../../mappings/acp.ts';
import { AGENT_EVENT } from '../../../mappings/acp-harn.ts';
import type { AskRecord, CoreEvent, JsonObject, Message, Part } from '../../../src/index.ts';
import { asText, emptyTaskView, evolve, leftOut, type TaskView, vendorEvent } from '../../../src/index.ts';
import { cameAs } from '../client/facts.ts';
import { type Fetched, toArtifactBlock, toBlock } from '../content.ts';
import { harnUpdate } from '../harn.ts';
import { compact, objectOf, textOf, within } from '../shapes.ts';
import { toWirePlan } from '../translate.ts';
import type { ClientProfile } from './client-profile.ts';
import { harnForms, harnHandoff } from './render-harn.ts';
import { createThoughtRenderer, THOUGHT } from './render-thoughts.ts';
import { answeredCall, createToolRenderer, handoffCall } from './render-tools.ts';

/** An update of the session, or a separate notification. */
export type RenderedFrame = { readonly update: JsonObject } | { readonly method: string; readonly params: JsonObject };

const HARN_EVENT = vendorEvent('vendor.harn.agent_event');

export interface RendererOptions {
  readonly client: ClientProfile;
  /** True for a task of this client: its prompts are not sent back to it. */
  own(taskId: string): boolean;
  /** Undefined when it is deleted or hidden. */
  artifact(id: string): Promise<Fetched | undefined>;
}

export interface EventRenderer {
  /** In a replay, messages and calls are rendered whole, in their final form. */
  render(event: CoreEvent, replay?: boolean): Promise<RenderedFrame[]>;
  /** The unfinished messages and calls at the end of a replay. */
  catchUp(): RenderedFrame[];
}

const EMBED = { image: true, embed: true };
const STANDARD: ReadonlySet<string> = new Set(UPDATES.map(({ wire }) => wire));

export function createEventRenderer({ client, own, artifact }: RendererOptions): EventRenderer {
  const views = new Map<string, TaskView>();
  const spoken = new Set<string>();
  const unshown = new Map<string, string>();
  const tools = createToolRenderer(client);
  const thoughts = createThoughtRenderer();
  const handed = new Set<string>();
  /** Questions of the past without their answer; live ones are dialogs. */
  const asks = new Map<string, AskRecord>();
  /** The message whose text was rendered last, with nothing after it. */
  let speaking: string | undefined;

  /** A view is held only while something in it is unfinished: a session outlives its tasks. */
  function viewed(taskId: string, event: CoreEvent): TaskView {
    const view = evolve(views.get(taskId) ?? emptyTaskView('open'), event);
    if (view.messages.size > 0 || view.calls.size > 0) views.set(taskId, view);
    return view;
  }

  async function blocksOf(parts: readonly Part[], all: boolean): Promise<JsonObject[]> {
    const blocks: JsonObject[] = [];
    for (const part of parts) {
      if ((!all && part.type === 'text') || part.type === 'redacted') continue;
      const id = textOf((part as JsonObject).artifact_id);
      const fetched = id ? await artifact(id) : undefined;
      if (id) unshown.delete(id);
      const block = toBlock(part, fetched, EMBED);
      if (block) blocks.push(block);
    }
    return blocks;
  }

  async function message(kind: string, { id, parts }: Message, all: boolean): Promise<RenderedFrame[]> {
    const blocks = await blocksOf(parts, all);
    return blocks.map((content) => ({ update: { sessionUpdate: kind, messageId: id, content } }));
  }

  function line(text: string, messageId: string): RenderedFrame {
    return { update: { sessionUpdate: 'agent_message_chunk', messageId, content: { type: 'text', text } } };
  }

  function delta(event: CoreEvent, replay: boolean): RenderedFrame[] {
    const id = asText(event.payload.message_id);
    const text = asText(event.payload.text ?? '');
    if (replay) return [];
    spoken.add(id);
    const came = cameAs(event);
    if (came) return [{ update: came }];
    const _meta = { harn: { visible_text: text, visible_delta: text } };
    const content = { type: 'text', text, ...(client.harn && { _meta }) };
    return [{ update: { sessionUpdate: 'agent_message_chunk', messageId: id, content } }];
  }

  async function said(event: CoreEvent): Promise<RenderedFrame[]> {
    const original = objectOf(event.payload.message) as Message | undefined;
    if (!original) return [];
    if (original.role === 'user') return await message('user_message_chunk', original, true);
    return await message('agent_message_chunk', original, !spoken.delete(original.id));
  }

  /** Files that no message referred to are shown before the end. */
  async function leftovers(taskId: string): Promise<RenderedFrame[]> {
    const rendered: RenderedFrame[] = [];
    for (const [id, task] of unshown) {
      if (task !== taskId) continue;
      unshown.delete(id);
      const found = await artifact(id);
      if (!found) continue;
      const content = toArtifactBlock(found, EMBED);
      rendered.push({ update: { sessionUpdate: 'agent_message_chunk', messageId: `${taskId}.files`, content } });
    }
    return rendered;
  }

  function created({ payload, task_id }: CoreEvent): RenderedFrame[] {
    const about = objectOf(payload.artifact) ?? {};
    if (within(about, 'metadata', 'spilled') === true || about.visibility !== 'public' || !task_id) return [];
    const id = asText(about.id);
    unshown.set(id, task_id);
    if (!client.harn) return [];
    const spec = compact({
      uri: textOf(about.uri) ?? `artifact://${id}`,
      name: within(about, 'metadata', 'name'),
      mime_type: about.mime_type,
      sha256: about.sha256 ?? undefined,
      size_bytes: within(about, 'metadata', 'bytes'),
    });
    const kind = about.kind === 'dataset' ? 'table' : 'file';
    const rendered = compact({
      artifactId: id,
      kind,
      title: within(about, 'metadata', 'name'),
      mimeType: about.mime_type,
      spec,
    });
    return [{ update: harnUpdate('artifact', rendered) }];
  }

  /** Messages that were begun and not sent, as far as they are written. */
  function unsent({ messages }: TaskView): RenderedFrame[] {
    const begun = [...messages.values()].filter(({ id, message }) => !message && !spoken.has(id));
    return begun.map(({ id, written }) => {
      spoken.add(id);
      return line(written, id);
    });
  }

  async function render(event: CoreEvent, replay: boolean): Promise<RenderedFrame[]> {
    const { payload } = event;
    const taskId = event.task_id ?? '';
    const view = viewed(taskId, event);
    switch (event.event) {
      case 'user.message':
        // The opening prompt of a task came from its own client; later messages are new to everyone but their sender.
        return own(taskId) && !replay && payload.kind === undefined ? [] : await said(event);
      case 'agent.message':
        return await said(event);
      case 'vendor.tollbridge.message_delta':
        return delta(event, replay);
      case 'agent.reasoning_summary':
        return thoughts.summary(event).map((update) => ({ update }));
      case 'vendor.tollbridge.plan': {
        const came = cameAs(event);
        const update = came?.sessionUpdate === 'plan' ? came : undefined;
        return [{ update: update ?? { sessionUpdate: 'plan', entries: toWirePlan(payload.entries) } }];
      }
      case 'artifact.created':
        return created(event);
      case 'agent.handoff':
        return handoff(event);
      case 'task.completed':
      case 'task.failed':
      case 'task.canceled':
        views.delete(taskId);
        return [...unsent(view), ...(await leftovers(taskId))];
      case 'session.compacted':
        return client.compaction
          ? [{ update: { sessionUpdate: 'compaction_update', compactionId: event.id, status: 'completed' } }]
          : [];
      case 'vendor.tollbridge.resource_updated': {
        const { object, summary, updated_at } = objectOf(payload.resource) ?? {};
        if (object !== 'session' || typeof summary !== 'string') return [];
        return [{ update: compact({ sessionUpdate: 'session_info_update', title: summary, updatedAt: updated_at }) }];
      }
      case 'vendor.tollbridge.ask_opened': {
        const ask = payload.ask as AskRecord;
        if (replay) asks.set(ask.id, ask);
        return [];
      }
      case 'vendor.tollbridge.ask_closed': {
        const ask = asks.get(asText(payload.ask_id));
        asks.delete(asText(payload.ask_id));
        return ask ? [{ update: answeredCall(ask, payload) }] : [];
      }
      case 'vendor.tollbridge.note':
        return notice('info', textOf(payload.text) ?? textOf(payload.message));
      case 'agent.tool_use':
      case 'agent.mcp_tool_use':
      case 'tool.requested':
      case 'tool.approved':
      case 'tool.completed':
      case 'tool.failed':
      case 'tool.denied':
      case 'span.updated':
      case 'vendor.tollbridge.decided':
        return rest(event, view, replay);
      default:
        if (event.event === HARN_EVENT) {
          const params = objectOf(within(event.ext, 'acp', 'notification', 'params'));
          return client.harn && params ? [{ method: AGENT_EVENT, params }] : [];
        }
        return [...leftOut(NOT_UPDATED, event.event), ...rest(event, view, replay)];
    }
  }

  /** Updates of this protocol or its Harn profile, as far as this client supports them. */
  function rest(event: CoreEvent, view: TaskView, replay: boolean): RenderedFrame[] {
    const tool = tools.render(event, view, replay);
    if (tool) return tool.map((update) => ({ update }));
    const profile = harnForms(event, client);
    if (profile) return profile.map((update) => ({ update }));
    const came = cameAs(event);
    if (!came) return [];
    // A client of the first version drops an unknown kind, or worse; a client that knows Tollbridge has asked for it.
    if (!STANDARD.has(asText(came.sessionUpdate))) return client.ours ? [{ update: came }] : [];
    switch (came.sessionUpdate) {
      case 'available_commands_update':
      case 'usage_update':
      case 'session_info_update':
        return [{ update: came }];
      case 'notice':
        return client.notices ? [{ update: came }] : [];
      case 'compaction_update':
      case 'compaction_summary_chunk':
        return client.compaction ? [{ update: came }] : [];
      default:
        // Modes and options of an agent behind us are not the ones this client was offered.
        return [];
    }
  }

  function notice(severity: string, title: string | undefined): RenderedFrame[] {
    return client.notices && title ? [{ update: { sessionUpdate: 'notice', severity, title } }] : [];
  }

  function handoff(event: CoreEvent): RenderedFrame[] {
    const came = cameAs(event);
    if (client.harn) return [{ update: came?.sessionUpdate === 'handoff' ? came : harnHandoff(event) }];
    return handoffCall(event, handed).map((update) => ({ update }));
  }

  /** Most editors join the text of messages that follow each other, so a message that follows another begins a paragraph. */
  function apart(frames: readonly RenderedFrame[]): readonly RenderedFrame[] {
    return frames.map((frame) => {
      const { sessionUpdate, messageId, content } = ('update' in frame ? frame.update : {}) as JsonObject;
      const text = textOf(within(content, 'text'));
      if (sessionUpdate !== 'agent_message_chunk' || typeof messageId !== 'string' || text === undefined) {
        if ('update' in frame) speaking = undefined;
        return frame;
      }
      const follows = speaking !== undefined && speaking !== messageId;
      speaking = messageId;
      if (!follows || !('update' in frame)) return frame;
      return { update: { ...frame.update, content: { ...objectOf(content), text: `\n\n${text}` } } };
    });
  }

  /** A thought precedes the events that follow from it. */
  async function inOrder(event: CoreEvent, replay: boolean): Promise<RenderedFrame[]> {
    if (event.event === THOUGHT) return thoughts.thought(event, replay).map((update) => ({ update }));
    const thought = thoughts.gathered().map((update) => ({ update }));
    return [...apart([...thought, ...(await render(event, replay))])];
  }

  return {
    render: (event, replay = false) => inOrder(event, replay),
    catchUp() {
      const thought = thoughts.gathered().map((update) => ({ update }));
      return [...apart([...thought, ...[...views.values()].flatMap(unsent)])];
    },
  };
}
