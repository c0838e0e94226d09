/** Harn's own updates as facts, row by row. Questions are not here: they are asked, not told. Pure. */

import { harnRow, WORKER_EVENTS } from '../../mappings/acp-harn.ts';
import type { Fact, JsonObject } from '../../src/index.ts';
import { asText } from '../../src/index.ts';
import { harnPayload, workerEvent } from './harn.ts';
import { compact, lookup, numberOf, objectOf, textOf, within } from './shapes.ts';

export function harnSteps(update: JsonObject, taskId: string): Fact[] {
  const kind = asText(update.sessionUpdate);
  const told = harnPayload(update);
  switch (kind) {
    case 'progress': {
      const { phase, message, progress, total, data } = told;
      const span = { id: `${taskId}.progress`, kind: 'progress' };
      return [{ event: 'span.updated', payload: compact({ span, phase, message, progress, total, data }) }];
    }
    case 'worker_update':
      return [worker(told, taskId)];
    case 'handoff':
      return handoff(told, taskId);
    case 'artifact':
      return [reference(told)];
    case 'hitl_request':
      return [];
    default: {
      const [event = `vendor.harn.${kind}`] = harnRow(kind)?.facts ?? [];
      return [{ event, payload: told }];
    }
  }
}

function worker(told: JsonObject, taskId: string): Fact {
  const event = workerEvent(told.event);
  const span = compact({
    id: `${taskId}.worker.${asText(told.workerId)}`,
    kind: 'worker',
    name: textOf(told.workerName),
    status: textOf(told.status) ?? (event && WORKER_EVENTS[event].status),
  });
  const fact = event ? WORKER_EVENTS[event].fact : told.terminal === true ? 'span.completed' : 'span.updated';
  return { event: fact, payload: compact({ span, task: told.workerTask, mode: told.workerMode }) };
}

/** What an agent hands on it hands on elsewhere: we know the name of it and no task of ours. */
function handoff(told: JsonObject, taskId: string): Fact[] {
  const about = objectOf(told.handoff) ?? {};
  const target =
    textOf(within(about, 'target_persona_or_human', 'id')) ??
    textOf(within(about, 'target_persona_or_human', 'label')) ??
    textOf(within(about, 'target_persona_or_human', 'kind')) ??
    'unknown';
  const id = textOf(told.handoffId) ?? textOf(about.id) ?? `${taskId}.handoff`;
  const payload = { target_agent: target, task_id: id, status: 'accepted', ...compact({ task: textOf(about.task) }) };
  return [{ event: 'agent.handoff', payload }];
}

const KINDS: Readonly<Record<string, string>> = { file: 'file', table: 'dataset' };

/** By reference only; the profile never carries bytes. */
function reference(told: JsonObject): Fact {
  const spec = objectOf(told.spec) ?? {};
  const hash = textOf(spec.sha256)?.replace(/^sha256:/, '');
  const artifact = {
    kind: lookup(KINDS, told.kind) ?? 'other',
    mime_type: textOf(told.mimeType) ?? textOf(spec.mime_type) ?? 'application/octet-stream',
    uri: textOf(spec.uri) ?? null,
    visibility: 'public',
    sha256: hash && /^[0-9a-f]{64}$/i.test(hash) ? hash.toLowerCase() : null,
    metadata: compact({
      name: textOf(spec.name) ?? textOf(told.title),
      harn_artifact_id: textOf(told.artifactId),
      size: numberOf(told.sizeBytes) ?? numberOf(spec.size_bytes),
    }),
  };
  return { event: 'artifact.created', payload: { artifact } };
}
