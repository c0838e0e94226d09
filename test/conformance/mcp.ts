/**
 * The official MCP suite against the gateway. Servers: what the suite finds at the fixture directly is what it must find through
 * the bridge, scenario by scenario, over HTTP and over standard input and output, and across eras. Clients: the suite
 * plays the server, and we are what connects to it. `--only <part of a route's name>` runs some; `--scenario <name>` one thing.
 */
import { parseArgs } from 'node:util';
import { DIFFERENCES, type Route, routes } from './mcp/routes.ts';
import { type Revision, runOfficial, type Verdict } from './mcp/suite.ts';
import type { Print } from './run.ts';

export async function main(options: readonly string[], print: Print): Promise<number> {
  const { values } = parseArgs({
    args: [...options],
    options: { only: { type: 'string' }, scenario: { type: 'string' } },
  });
  const wanted = routes.filter(({ name }) => name.includes(values.only ?? ''));
  if (wanted.length === 0) {
    print(`there is no such route; there are: ${routes.map(({ name }) => name).join(', ')}`);
    return 2;
  }
  const known = new Map<string, readonly Verdict[]>();
  let [passed, failed] = [0, 0];
  for (const route of wanted) {
    for (const revision of route.revisions) {
      const verdicts = await measure(route, revision, print, values.scenario);
      known.set(`${route.name} ${revision}`, verdicts);
      const faults = faultsOf(route, verdicts, known.get(`${route.like} ${revision}`));
      passed += verdicts.length - faults.length;
      failed += faults.length;
      print(summary(route, revision, verdicts));
      for (const fault of faults) print(`FAIL ${route.name}, ${revision}: ${fault}`);
    }
  }
  print(`${passed} passed, ${failed} failed`);
  return failed > 0 ? 1 : 0;
}

async function measure(route: Route, revision: Revision, print: Print, scenario?: string): Promise<readonly Verdict[]> {
  const opened = await route.open(revision);
  try {
    return await runOfficial(opened.target, revision, print, scenario);
  } finally {
    await opened.close();
  }
}

/** What passes directly passes here, but for differences that lie in the route itself; a stale difference is a fault. */
function faultsOf(
  route: Route,
  verdicts: readonly Verdict[],
  direct: readonly Verdict[] | undefined,
): readonly string[] {
  if (route.measure) return [];
  const known = DIFFERENCES.filter((difference) => difference.route === route.name);
  const faults = verdicts.flatMap(({ scenario, passed, reasons }) => {
    const excused = known.some((difference) => difference.scenario === scenario);
    if (passed && excused) return [`${scenario} passes and is said not to`];
    if (passed || excused) return [];
    if (direct?.some((verdict) => verdict.scenario === scenario && !verdict.passed)) return [];
    return [`${scenario}\n       ${reasons.join('\n       ')}`];
  });
  const missing = (direct ?? []).filter(({ scenario }) => !verdicts.some((verdict) => verdict.scenario === scenario));
  return [...faults, ...missing.map(({ scenario }) => `${scenario} was not run`)];
}

function summary({ name }: Route, revision: Revision, verdicts: readonly Verdict[]): string {
  const scored = verdicts.filter((verdict) => verdict.scored);
  const good = (some: readonly Verdict[]) => `${some.filter(({ passed }) => passed).length} of ${some.length}`;
  const checks = verdicts.reduce((sum, each) => sum + each.checks, 0);
  return `${name}, ${revision}: ${good(scored)} required scenarios, ${good(verdicts)} in all, ${checks} checks`;
}
