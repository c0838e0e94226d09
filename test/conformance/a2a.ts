/**
 * `npm run conformance -- a2a`: every operation on every binding (JSON-RPC, HTTP+JSON, gRPC) in both revisions, by bare requests
 * and by the SDKs' own clients. Without `--target` an agent that behaves as the protocol's test kit asks is served and examined; with it,
 * any agent that behaves so, at `--target <its base>`.
 */
import { parseArgs } from 'node:util';
import type { Actor } from '../../src/model/actions.ts';
import { operationChecks } from './a2a/checks.ts';
import { newerChecks } from './a2a/checks-1.0.ts';
import { startSut } from './a2a/sut.ts';
import { createTarget, nameOf, WAYS, type Way } from './a2a/target.ts';
import type { Print } from './run.ts';

const PEOPLE: Readonly<Record<string, Actor>> = {
  one: { id: 'one', kind: 'person', scopes: ['*', 'approvals:own'] },
  two: { id: 'two', kind: 'person', scopes: ['*', 'approvals:own'] },
};

export async function main(options: readonly string[], print: Print): Promise<number> {
  const { values } = parseArgs({
    args: [...options],
    options: {
      target: { type: 'string' },
      token: { type: 'string' },
      'other-token': { type: 'string' },
      /** Only 1.0, for agents that serve nothing else. */
      'no-legacy': { type: 'boolean' },
    },
  });
  const own = values.target ? undefined : await startSut({ people: PEOPLE, config: { grpc: { port: 0 } } });
  try {
    const at = own
      ? createTarget(`${own.url}/a2a/tck`, 'one', 'two')
      : createTarget(values.target!.replace(/\/$/, ''), values.token, values['other-token']);
    const ways: Way[] = [];
    for (const way of WAYS) {
      if (values['no-legacy'] && way.version !== '1.0') continue;
      if (await at.supports(way)) ways.push(way);
      else print(`${nameOf(way)} is not offered, and not examined`);
    }
    let [passed, failed] = [0, 0];
    for (const { name, run } of [...operationChecks(ways), ...newerChecks(ways)]) {
      try {
        await run(at);
        passed += 1;
      } catch (cause) {
        failed += 1;
        print(`FAIL ${name}\n     ${cause instanceof Error ? cause.message : String(cause)}`);
      }
    }
    print(`${passed} passed, ${failed} failed`);
    return failed > 0 ? 1 : 0;
  } finally {
    await own?.close();
  }
}
