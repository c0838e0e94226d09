/** Harn updates as facts, one case per row. Questions are handled elsewhere, because they need an answer. Pure. */

import { harnRow, WORKER_EVENTS } from '../../../mappings/acp-harn.ts';
import type { Fact, JsonObject } from '../../../src/index.ts';
import { asText, eventKind } from '../../../src/index.ts';
import { harnPayload, workerEvent } from '../harn.ts';
import { compact, lookup, numberOf, objectOf, textOf, within } from '../shapes.ts';

export function harnSteps(update: JsonObject, taskId: string): Fact[] {
  const kind = asText(update.sessionUpdate);
  const fields = harnPayload(update);
  switch (kind) {
    case 'progress': {
      const { phase, message, progress, total, data } = fields;
      const span = { id: `${taskId}.progress`, kind: 'progress' };
      return [{ event: 'span.updated', payload: compact({ span, phase, message, progress, total, data }) }];
    }
    case 'worker_update':
      return [worker(fields, taskId)];
    case 'handoff':
      return handoff(fields, taskId);
    case 'artifact':
      return [reference(fields)];
    case 'hitl_request':
      return [];
    default: {
      const [event = `vendor.harn.${kind}`] = harnRow(kind)?.facts ?? [];
      return [{ event: eventKind(event), payload: fields }];
    }
  }
}

function worker(fields: JsonObject, taskId: string): Fact {
  const event = workerEvent(fields.event);
  const span = compact({
    id: `${taskId}.worker.${asText(fields.workerId)}`,
    kind: 'worker',
    name: textOf(fields.workerName),
    status: textOf(fields.status) ?? (event && WORKER_EVENTS[event].status),
  });
  const fact = event ? WORKER_EVENTS[event].fact : fields.terminal === true ? 'span.completed' : 'span.updated';
  return { event: fact, payload: compact({ span, task: fields.workerTask, mode: fields.workerMode }) };
}

/** The agent hands off to another system: we know its name and have no task for it. */
function handoff(fields: JsonObject, taskId: string): Fact[] {
  const about = objectOf(fields.handoff) ?? {};
  const target =
    textOf(within(about, 'target_persona_or_human', 'id')) ??
    textOf(within(about, 'target_persona_or_human', 'label')) ??
    textOf(within(about, 'target_persona_or_human', 'kind')) ??
    'unknown';
  const id = textOf(fields.handoffId) ?? textOf(about.id) ?? `${taskId}.handoff`;
  const payload = { target_agent: target, task_id: id, status: 'accepted', ...compact({ task: textOf(about.task) }) };
  return [{ event: 'agent.handoff', payload }];
}

const KINDS: Readonly<Record<string, string>> = { file: 'file', table: 'dataset' };

/** By reference only; the profile never carries bytes. */
function reference(fields: JsonObject): Fact {
  const spec = objectOf(fields.spec) ?? {};
  const hash = textOf(spec.sha256)?.replace(/^sha256:/, '');
  const artifact = {
    kind: lookup(KINDS, fields.kind) ?? 'other',
    mime_type: textOf(fields.mimeType) ?? textOf(spec.mime_type) ?? 'application/octet-stream',
    uri: textOf(spec.uri) ?? null,
    visibility: 'public',
    sha256: hash && /^[0-9a-f]{64}$/i.test(hash) ? hash.toLowerCase() : null,
    metadata: compact({
      name: textOf(spec.name) ?? textOf(fields.title),
      harn_artifact_id: textOf(fields.artifactId),
      size: numberOf(fields.sizeBytes) ?? numberOf(spec.size_bytes),
    }),
  };
  return { event: 'artifact.created', payload: { artifact } };
}
