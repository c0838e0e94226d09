/**
 * `npm run conformance -- harn`: the Agents Protocol, as the public suite examines it and as its text asks beyond that.
 * Without `--target` the built gateway is started, examined and stopped. Checks that need a process of our own are
 * skipped elsewhere; what is skipped is never counted as passed.
 */
import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { beyond } from './harn/beyond.ts';
import { type OwnGateway, startOwn } from './harn/gateway.ts';
import { publicSuite } from './harn/public.ts';
import { type Report, reportOf, runCategories } from './harn/report.ts';
import { createTarget, type Target } from './harn/target.ts';
import type { Print } from './run.ts';

const USAGE = `npm run conformance -- harn [options]
  --target URL             a server; without it the built gateway is started
  --api-key KEY            bearer token (or HARN_AGENTS_CONFORMANCE_API_KEY)
  --other-key KEY          a token of another tenant, for checks of isolation
  --category NAME[,NAME]   only these; --list names them
  --workspace-id ID, --session-id ID   use what exists
  --timeout MS             for each exchange (30000)
  --json, --json-out PATH  the report
  --source                 start the sources instead of the build
  -v, --verbose            name what passed, too`;

const OPTIONS = {
  target: { type: 'string' },
  'api-key': { type: 'string' },
  'other-key': { type: 'string' },
  category: { type: 'string', multiple: true },
  'workspace-id': { type: 'string' },
  'session-id': { type: 'string' },
  timeout: { type: 'string' },
  json: { type: 'boolean' },
  'json-out': { type: 'string' },
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
  const capabilities: Record<string, boolean> = {};
  const options = { workspaceId: values['workspace-id'], sessionId: values['session-id'], capabilities };
  const ours = publicSuite(options).map((category) => ({ category, suite: true }));
  const all = [...ours, ...beyond.map((category) => ({ category, suite: false }))];
  const names = all.map(({ category }) => category.name);
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
  const chosen =
    wanted.length === 0 ? all : wanted.flatMap((name) => all.filter(({ category }) => category.name === name));

  let own: OwnGateway | undefined;
  try {
    own = values.target ? undefined : await startOwn({ source: values.source ?? false });
    const base = values.target ?? own!.url;
    const key = own
      ? (await own.issue({ id: 'conformance' })).key
      : (values['api-key'] ?? process.env.HARN_AGENTS_CONFORMANCE_API_KEY);
    const stranger = own ? (await own.issue({ id: 'stranger', tenant: 'elsewhere' })).key : values['other-key'];
    const common = {
      key,
      stranger,
      own,
      timeoutMs: Number(values.timeout ?? 30_000),
      workspaceId: options.workspaceId,
    };
    const at = createTarget({ ...common, base });
    const second = await secondMount(base);
    if (second && !own && !values.json) print(`the public suite examines ${second}`);
    const atSuite = second ? createTarget({ ...common, base: second }) : at;
    if (own) await haveWebhook(at);
    const categories = chosen.map(({ category, suite }) => ({ category, at: suite ? atSuite : at }));
    const done = await runCategories(categories, (name, test) => {
      if (values.json || (test.status === 'passed' && !values.verbose)) return;
      if (test.status === 'failed')
        print(`FAIL ${name}: ${test.name}\n     ${test.error?.replaceAll('\n', '\n     ')}`);
      else
        print(
          `${test.status === 'passed' ? 'ok  ' : 'skip'} ${name}: ${test.name}${test.error ? ` (${test.error})` : ''}`,
        );
    });
    const report = reportOf(base, done, capabilities);
    if (values['json-out']) await writeFile(values['json-out'], `${JSON.stringify(report, null, 2)}\n`);
    tell(report, values.json ?? false, print);
    return report.summary.failed > 0 ? 1 : 0;
  } finally {
    await own?.close();
  }
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

function tell(report: Report, asJson: boolean, print: Print): void {
  if (asJson) {
    print(JSON.stringify(report, null, 2));
    return;
  }
  const { passed, failed, skipped } = report.summary;
  if (skipped > 0) print(`${skipped} skipped`);
  print(`${passed} passed, ${failed} failed`);
}

function readOptions(args: readonly string[]) {
  try {
    const read = parseArgs({ args: [...args], options: OPTIONS, allowPositionals: false });
    const { target, timeout } = read.values;
    if (target !== undefined && !URL.canParse(target)) return `${target} is not a URL`;
    if (timeout !== undefined && !(Number(timeout) > 0)) return `${timeout} is not a number of milliseconds`;
    return read;
  } catch (cause) {
    return (cause as Error).message;
  }
}
