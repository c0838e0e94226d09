/**
 * `npm run conformance -- harn`: the Agents Protocol, as the public suite examines it and as its text asks beyond that, once in
 * each revision the server speaks.
 * Without `--target` the built gateway is started, examined and stopped. Checks that need a process of our own are
 * skipped elsewhere; what is skipped is never counted as passed.
 */
import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { beyond } from './harn/beyond.ts';
import { type OwnGateway, startOwn } from './harn/harness/gateway.ts';
import { type Listener, type Report, reportOf, runCategories } from './harn/harness/report.ts';
import type { Revision } from './harn/harness/revision.ts';
import { FIRST } from './harn/harness/revision-2026-04-25.ts';
import { SECOND } from './harn/harness/revision-2026-10-11.ts';
import { createTarget, type Target } from './harn/harness/target.ts';
import { type PublicOptions, publicSuite } from './harn/public.ts';
import type { Print } from './run.ts';

export const REVISIONS: readonly Revision[] = [FIRST, SECOND];

const USAGE = `npm run conformance -- harn [options]
  --target URL             a server; without it the built gateway is started
  --api-key KEY            bearer token (or HARN_AGENTS_CONFORMANCE_API_KEY)
  --other-key KEY          a token of another tenant, for checks of isolation
  --category NAME[,NAME]   only these; --list names them
  --revision VERSION       only this one; repeatable
  --workspace-id ID, --session-id ID   use what exists
  --timeout MS             for each exchange (30000)
  --json, --json-out PATH  a list of reports, one for each revision
  --bail                   stop after the first check that fails
  --source                 start the sources instead of the build
  -v, --verbose            name what passed, too`;

const OPTIONS = {
  target: { type: 'string' },
  'api-key': { type: 'string' },
  'other-key': { type: 'string' },
  category: { type: 'string', multiple: true },
  revision: { type: 'string', multiple: true },
  'workspace-id': { type: 'string' },
  'session-id': { type: 'string' },
  timeout: { type: 'string' },
  json: { type: 'boolean' },
  'json-out': { type: 'string' },
  bail: { type: 'boolean' },
  source: { type: 'boolean' },
  list: { type: 'boolean' },
  verbose: { type: 'boolean', short: 'v' },
} as const;

export async function main(args: readonly string[], print: Print): Promise<number> {
  const read = readOptions(args);
  if (typeof read === 'string') {
    console.error(`${read}\n${USAGE}`);
    return 2;
  }
  const { values } = read;
  const names = [...new Set(REVISIONS.flatMap((revision) => categoriesOf(revision, {}).map(({ name }) => name)))];
  if (values.list) {
    print(names.join('\n'));
    return 0;
  }
  const wanted = (values.category ?? []).flatMap((name) => name.split(','));
  const unknown = wanted.find((name) => !names.includes(name));
  if (unknown) {
    console.error(`there is no category ${unknown}; there are: ${names.join(', ')}`);
    return 2;
  }

  let own: OwnGateway | undefined;
  try {
    own = values.target ? undefined : await startOwn({ source: values.source ?? false });
    const base = values.target ?? own!.url;
    const key = own
      ? (await own.issue({ id: 'conformance' })).key
      : (values['api-key'] ?? process.env.HARN_AGENTS_CONFORMANCE_API_KEY);
    const outsider = own ? (await own.issue({ id: 'outsider', tenant: 'elsewhere' })).key : values['other-key'];
    const common = {
      key,
      outsider,
      own,
      timeoutMs: Number(values.timeout ?? 30_000),
      workspaceId: values['workspace-id'],
    };
    const second = await secondMount(base);
    if (second && !own && !values.json) print(`the public suite examines ${second}`);
    if (own) await haveWebhook(createTarget({ ...common, base, revision: FIRST }));

    const reports: Report[] = [];
    for (const revision of await examined(base, values.revision, (line) => !values.json && print(line))) {
      const at = createTarget({ ...common, base, revision });
      const atSuite = second ? createTarget({ ...common, base: second, revision }) : at;
      const capabilities: Record<string, boolean> = {};
      const options = { workspaceId: values['workspace-id'], sessionId: values['session-id'], capabilities };
      const all = categoriesOf(revision, options);
      const chosen = wanted.length === 0 ? all : wanted.flatMap((name) => all.filter((each) => each.name === name));
      const placed = chosen.map(({ category, suite }) => ({ category, at: suite ? atSuite : at }));
      const reported = values.json ? () => {} : teller(revision, values.verbose ?? false, print);
      const done = await runCategories(placed, reported, values.bail);
      reports.push(reportOf(base, revision.version, done, capabilities));
      if (values.bail && reports.some(({ summary }) => summary.failed > 0)) break;
    }
    if (values['json-out']) await writeFile(values['json-out'], `${JSON.stringify(reports, null, 2)}\n`);
    tell(reports, values.json ?? false, print);
    return reports.some(({ summary }) => summary.failed > 0) || reports.length === 0 ? 1 : 0;
  } finally {
    await own?.close();
  }
}

/** The public suite's categories and ours, as they are for this revision. */
function categoriesOf(revision: Revision, options: Partial<PublicOptions>) {
  const suite = publicSuite({ capabilities: {}, ...options }).map((category) => ({ category, suite: true }));
  const ours = beyond(revision).map((category) => ({ category, suite: false }));
  return [...suite, ...ours].map((each) => ({ ...each, name: each.category.name }));
}

/** The revisions that were named, or all. One that the server says it does not speak is not examined, which is said. */
async function examined(
  base: string,
  named: readonly string[] | undefined,
  print: Print,
): Promise<readonly Revision[]> {
  if (named) return REVISIONS.filter(({ version }) => named.includes(version));
  const answer = await fetch(`${base.replace(/\/$/, '')}/v1`).catch(() => undefined);
  const said = (await answer?.json().catch(() => undefined)) as { supported_versions?: unknown } | undefined;
  const supported = Array.isArray(said?.supported_versions) ? said.supported_versions : undefined;
  if (!supported) return REVISIONS;
  for (const { version } of REVISIONS) if (!supported.includes(version)) print(`${version} is not spoken there`);
  return REVISIONS.filter(({ version }) => supported.includes(version));
}

function teller({ version }: Revision, verbose: boolean, print: Print): Listener {
  return (category, { name, status, error }) => {
    const what = `${version} ${category}: ${name}`;
    if (status === 'failed') print(`FAIL ${what}\n     ${error?.replaceAll('\n', '\n     ')}`);
    else if (status === 'skipped') print(`skip ${what} (${error})`);
    else if (verbose) print(`ok   ${what}`);
  };
}

/** The public suite looks for the card under its older name; a gateway like ours shows it so at a second mount. */
async function secondMount(base: string): Promise<string | undefined> {
  const there = `${base.replace(/\/$/, '')}/harn-suite`;
  const answer = await fetch(`${there}/v1/agent-card`).catch(() => undefined);
  const card = answer?.ok
    ? ((await answer.json().catch(() => undefined)) as { object?: string } | undefined)
    : undefined;
  return card?.object === 'agent_card' ? there : undefined;
}

/** The public suite looks at a connector that takes webhooks, if there is one. */
async function haveWebhook(at: Target): Promise<void> {
  const { id } = await at.workspace();
  const body = { provider: 'conformance', workspace_id: id, event_kinds: ['webhook.received'], webhook: {} };
  await at.made('POST', '/v1/connectors', { body });
}

function tell(reports: readonly Report[], asJson: boolean, print: Print): void {
  if (asJson) {
    print(JSON.stringify(reports, null, 2));
    return;
  }
  const sum = (of: 'passed' | 'failed' | 'skipped') => reports.reduce((total, { summary }) => total + summary[of], 0);
  for (const { protocol_version, summary } of reports) print(`${protocol_version}: ${summary.passed} passed`);
  if (sum('skipped') > 0) print(`${sum('skipped')} skipped`);
  print(`${sum('passed')} passed, ${sum('failed')} failed`);
}

function readOptions(args: readonly string[]) {
  try {
    const read = parseArgs({ args: [...args], options: OPTIONS, allowPositionals: false });
    const { target, timeout, revision } = read.values;
    const versions = REVISIONS.map(({ version }) => version);
    const unknown = revision?.find((version) => !versions.includes(version));
    if (unknown !== undefined) return `there is no revision ${unknown}; there are: ${versions.join(', ')}`;
    if (target !== undefined && !URL.canParse(target)) return `${target} is not a URL`;
    if (timeout !== undefined && !(Number(timeout) > 0)) return `${timeout} is not a number of milliseconds`;
    return read;
  } catch (cause) {
    return (cause as Error).message;
  }
}
