/** The three contracts of a run: its lifecycle, its list of tasks, and the verification of its result. */
import { artifactKind, checkEvent, planStatus, runStatus } from '../../../../mappings/ahp.ts';
import {
  type Actor,
  asText,
  type Deps,
  type End,
  type Fact,
  type Json,
  type JsonObject,
  own,
} from '../../../../src/index.ts';
import type { AhpEvent } from '../../translate.ts';
import { openingOf, says } from '../event-members.ts';
import type { Runs, SupervisedRun } from '../supervised-tasks.ts';
import type { RunEndings } from './endings.ts';
import { text } from './read-reports.ts';

export interface ContractsDeps {
  readonly runs: Runs;
  readonly endings: RunEndings;
  readonly deps: Pick<Deps, 'ids'>;
  report(run: SupervisedRun, event: AhpEvent, facts: readonly Fact[]): Promise<void>;
}

export interface Contracts {
  /** False when the run has ended, and the event changes nothing. */
  take(actor: Actor, event: AhpEvent, framework: string | undefined): Promise<boolean>;
}

export function createContracts({ runs, endings, deps, report }: ContractsDeps): Contracts {
  async function runLifecycle(actor: Actor, event: AhpEvent, framework: string | undefined): Promise<boolean> {
    const payload = event.payload as JsonObject;
    const status = asText(payload.status);
    const prompt = text(payload.prompt);
    const opening = openingOf(event, framework);
    const input = prompt ? (says('user', prompt).message as JsonObject) : opening.input;
    const run = await runs.contract(actor, event, asText(payload.run_id), { ...opening, input });
    if (!run) return false;
    const state = runStatus.toCore(status);
    const ends = state === 'COMPLETED' || state === 'FAILED' || state === 'CANCELED';
    if (!ends) {
      const phase = { phase: status, run_id: payload.run_id as Json };
      await report(run, event, [{ event: 'span.updated', payload: phase }]);
      return true;
    }
    const reason = text(payload.error);
    const summary = text(payload.result_summary) ?? (state === 'CANCELED' ? reason : undefined);
    const end: End = {
      state,
      ...(summary !== undefined && { summary }),
      ...(state === 'FAILED' && { failure: { code: 'agent_failed', message: reason ?? 'the agent says it failed' } }),
    };
    await endings.endLater(run, end);
    return true;
  }

  async function taskList(run: SupervisedRun, event: AhpEvent): Promise<void> {
    // Checked by the schema of its event.
    const { tasks } = event.payload as unknown as { tasks: readonly JsonObject[] };
    const entries = tasks.map(({ id, title, status, ...rest }) => {
      const word = asText(status);
      const plain = word === 'failed' || word === 'skipped' || word === 'cancelled' ? `${word}: ${title}` : title;
      return {
        content: plain as Json,
        status: planStatus.toCore(word) ?? 'pending',
        priority: 'medium',
        ext: { ahp: { id: id as Json, status: word, ...rest } },
      };
    });
    // Plain data of ours.
    await report(run, event, [{ event: 'vendor.tollbridge.plan', payload: { entries: entries as unknown as Json } }]);
  }

  async function verification(run: SupervisedRun, event: AhpEvent): Promise<void> {
    const {
      status,
      checks = [],
      residual_risks = [],
      // Checked by the schema of its event.
    } = event.payload as unknown as {
      status: string;
      checks?: readonly JsonObject[];
      residual_risks?: readonly string[];
    };
    run.verification = {
      status,
      checks: checks.map(({ id, subject, status: came }) => ({ id, subject, status: came })) as Json,
      residual_risks,
    };
    const facts = checks.flatMap((check): Fact[] => {
      const kind = own(checkEvent, asText(check.status));
      const span = {
        id: deps.ids.next('span'),
        kind: 'check',
        name: check.subject as Json,
        check_id: check.id as Json,
      };
      const { command = null, message = null } = check;
      const checked = { span, status: check.status as Json, command, message };
      return [...(kind ? [{ event: kind, payload: checked }] : []), ...artifactsIn(check).map(artifactFact)];
    });
    await report(run, event, facts);
    if (run.ending) await endings.finish(run, run.ending.end);
  }

  return {
    async take(actor, event, framework) {
      if (event.event_type === 'run_lifecycle') return await runLifecycle(actor, event, framework);
      const runId = asText((event.payload as JsonObject).run_id);
      const run = await runs.contract(actor, event, runId, openingOf(event, framework));
      if (!run) return false;
      await (event.event_type === 'task_list' ? taskList(run, event) : verification(run, event));
      return true;
    },
  };
}

function artifactsIn({ artifacts = [], evidence = [] }: JsonObject): JsonObject[] {
  // Checked by the schema of its event, as the artifacts are.
  const pieces = (evidence as unknown as readonly JsonObject[]).flatMap(({ artifact }) => (artifact ? [artifact] : []));
  return [...(artifacts as unknown as readonly JsonObject[]), ...(pieces as JsonObject[])];
}

const HEX = /^(?:sha256:)?([0-9a-f]{64})$/i;

function artifactFact(ref: JsonObject): Fact {
  const { id, kind, uri, path, mime_type, sha256, size_bytes, summary } = ref;
  const hash = HEX.exec(asText(sha256 ?? ''))?.[1]?.toLowerCase() ?? null;
  const metadata = {
    external_id: id,
    ...(kind && artifactKind(asText(kind)) !== kind && { claimed_kind: kind }),
    ...(sha256 && !hash && { claimed_sha256: sha256 }),
    ...(size_bytes !== undefined && { size_bytes }),
    ...(summary && { summary }),
    ...(path && { path }),
  };
  const artifact = {
    kind: artifactKind(text(kind)),
    mime_type: text(mime_type) ?? 'application/octet-stream',
    uri: text(uri) ?? (path ? `file:${path}` : null),
    visibility: 'internal',
    sha256: hash,
    metadata: metadata as JsonObject,
  };
  // Plain data of ours.
  return { event: 'artifact.created', payload: { artifact: artifact as unknown as Json } };
}
