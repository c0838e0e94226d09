/**
 * Spans of a session and of the work it handed over: each task, and inside it its calls, questions and handoffs, whichever protocol they
 * came through. Takes events in the order of the log. Pure.
 */
import { brief } from '../../model/values/visible-text.ts';
import { artifactName, bag, type LogEvent, str, taskText, usageText } from './rows.ts';

export interface Span {
  readonly id: string;
  readonly kind: 'task' | 'call' | 'approval' | 'handoff' | 'artifact' | 'model' | 'prompt';
  readonly name: string;
  readonly depth: number;
  readonly from: number;
  readonly to: number | undefined;
  readonly tone: '' | 'good' | 'bad' | 'warn' | 'info';
  readonly note: string;
  /** The event it began with. */
  readonly event: string;
}

interface Building extends Omit<Span, 'depth' | 'to' | 'tone' | 'note'> {
  to: number | undefined;
  tone: Span['tone'];
  note: string;
  readonly parent: string | undefined;
}

/** Letters of what a task was given that its span shows. */
const LONGEST = 120;

export function spansOf(events: readonly LogEvent[]): readonly Span[] {
  const found = new Map<string, Building>();
  const begin = (
    event: LogEvent,
    id: string,
    kind: Span['kind'],
    name: string,
    parent: string | undefined,
    note = '',
  ) => {
    if (found.has(id)) return;
    const at = Date.parse(event.created_at);
    const ends = kind === 'artifact' || kind === 'model' || kind === 'prompt' ? at : undefined;
    found.set(id, { id, kind, name, parent, note, from: at, to: ends, tone: '', event: event.id });
  };
  /** The task that handed a task over. */
  const handedBy = new Map<string, string>();
  const end = (event: LogEvent, id: string, tone: Span['tone']) => {
    const span = found.get(id);
    if (!span || span.to !== undefined) return;
    span.to = Date.parse(event.created_at);
    span.tone = tone;
  };

  for (const event of events) {
    const { payload } = event;
    const task = event.task_id ?? undefined;
    const call = `${task} ${str(payload.tool_call_id)}`;
    switch (event.event) {
      case 'task.submitted': {
        const made = bag(payload.task);
        const agent = str(payload.agent) || str(made.assigned_agent_id);
        const parent = str(made.parent_task_id);
        if (task && parent) handedBy.set(task, parent);
        const input = brief(taskText(made).slice(0, LONGEST * 2), LONGEST);
        begin(event, task ?? '', 'task', agent || task || '', parent || undefined, input);
        break;
      }
      case 'user.message':
        begin(event, event.id, 'prompt', 'prompt', task);
        break;
      case 'tool.requested':
        begin(
          event,
          call,
          'call',
          [str(payload.server), str(payload.name)].filter(Boolean).join(' · '),
          task,
          str(payload.target),
        );
        break;
      case 'tool.completed':
        end(event, call, 'good');
        break;
      case 'tool.failed':
      case 'tool.denied':
        end(event, call, 'bad');
        break;
      case 'vendor.tollbridge.ask_opened': {
        const ask = bag(payload.ask);
        const about = `${task} ${str(ask.tool_call_id)}`;
        begin(event, str(ask.id), 'approval', str(ask.question), found.has(about) ? about : task);
        break;
      }
      case 'vendor.tollbridge.ask_closed':
        end(event, str(payload.ask_id), payload.state === 'approved' || payload.state === 'answered' ? 'good' : 'bad');
        break;
      case 'agent.handoff': {
        // The task that got the work reports it too.
        if (task && handedBy.get(task) === str(payload.task_id)) break;
        const id = handoffId(task, str(payload.task_id));
        begin(event, id, 'handoff', str(payload.target_agent), task);
        if (payload.status !== 'accepted') end(event, id, payload.status === 'completed' ? 'good' : 'bad');
        break;
      }
      case 'artifact.created':
        begin(event, event.id, 'artifact', artifactName(payload.artifact), task);
        break;
      case 'span.completed':
        begin(event, modelId(event, bag(payload.span)), 'model', str(bag(payload.model).model) || 'model call', task);
        break;
      case 'vendor.tollbridge.usage': {
        const span = found.get(modelId(event, payload));
        if (span) span.note = usageText(payload);
        break;
      }
      case 'task.completed':
        end(event, task ?? '', 'good');
        break;
      case 'task.failed':
      case 'task.canceled':
        end(event, task ?? '', 'bad');
        break;
    }
  }
  return nested(found);
}

function handoffId(from: string | undefined, to: string): string {
  return `${from} handoff ${to}`;
}

/** A call of a model, as its end and the report of its usage name it. */
function modelId({ id, task_id }: LogEvent, { call_id }: Readonly<Record<string, unknown>>): string {
  return str(call_id) ? `${task_id} model ${str(call_id)}` : id;
}

/** Parents before children, in the order they began. */
function nested(found: ReadonlyMap<string, Building>): readonly Span[] {
  const below = new Map<string | undefined, Building[]>();
  for (const span of found.values()) {
    // Work that was handed over stands in its handoff, which is reported after the work has begun.
    const handoff = handoffId(span.parent, span.id);
    const wanted = found.has(handoff) ? handoff : span.parent;
    const parent = wanted !== undefined && found.has(wanted) && wanted !== span.id ? wanted : undefined;
    const list = below.get(parent) ?? [];
    below.set(parent, list);
    list.push(span);
  }
  const ordered: Span[] = [];
  const seen = new Set<string>();
  const walk = (parent: string | undefined, depth: number) => {
    for (const { parent: _, ...span } of below.get(parent) ?? []) {
      if (seen.has(span.id)) continue;
      seen.add(span.id);
      ordered.push({ ...span, depth });
      walk(span.id, Math.min(depth + 1, 8));
    }
  };
  walk(undefined, 0);
  return ordered;
}
