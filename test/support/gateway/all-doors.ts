/** One gateway behind every door at once, on one port: the same work read in each protocol by clients with different scopes. */
import { onTestFinished } from 'vitest';
import { a2a } from '../../../adapters/a2a/index.ts';
import { acp } from '../../../adapters/acp/index.ts';
import { ahp } from '../../../adapters/ahp/index.ts';
import { harn } from '../../../adapters/harn/index.ts';
import { mcp } from '../../../adapters/mcp/index.ts';
import { runs } from '../../../adapters/runs/index.ts';
import { linkDoor } from '../../../src/inbox/door.ts';
import { createLinks, type Links } from '../../../src/inbox/links.ts';
import type { Actor } from '../../../src/model/actions.ts';
import { Fault } from '../../../src/model/faults.ts';
import type { Adapter, Closable, Deps } from '../../../src/ports/index.ts';
import { createHttpHost } from '../../../src/transport/http/server.ts';
import { openTestGateway, type TestGateway, type TestGatewayOptions } from './test-gateway.ts';

export interface AllDoors {
  readonly at: TestGateway;
  readonly url: string;
  /** The only workspace. */
  readonly workspace: string;
  readonly links: Links;
  /** The open doors, by name. */
  readonly doors: ReadonlyMap<string, Closable>;
}

export interface AllDoorsOptions extends TestGatewayOptions {
  /** By token. */
  readonly people: Readonly<Record<string, Actor>>;
  /** Addresses that push notifications may go to. */
  readonly pushTo?: readonly string[];
}

const quiet = { info() {}, warn() {}, error() {} };

export async function openAllDoors({ people, pushTo = [], ...options }: AllDoorsOptions): Promise<AllDoors> {
  const at = await openTestGateway(options);
  let count = 0;
  const http = createHttpHost({ requestId: () => `req_${++count}`, log: quiet, graceMs: 200 });
  const deps: Deps = {
    log: quiet,
    clock: at.clock,
    ids: { next: (prefix) => `${prefix}_d${++count}` },
    http,
    authenticate: async (bearer) => {
      const actor = people[bearer ?? ''];
      if (!actor) throw new Fault('unauthenticated', 'the token is not valid');
      return actor;
    },
    permissions: at.runtime.permissions,
    jwks: () => at.runtime.keyring.jwks(),
    sign: (said) => at.runtime.keyring.signer().sign(said),
    mac: (said) => at.runtime.keyring.signer().mac(said),
    lease: (name) => at.runtime.store.lease(name),
    trouble: () => at.runtime.store.trouble(),
    secret: async (name) => {
      throw new Fault('not_found', `no secret ${name}`);
    },
  };
  const body = { object: 'workspace' as const, body: { name: 'w', root: 'file:///w' } };
  const workspace = (await at.send('resource.create', body)).resource.id;
  const links = createLinks((text) => at.runtime.keyring.signer().mac(text));
  const settings: readonly (readonly [Adapter, object])[] = [
    [a2a, { push: { allow: pushTo, retry_ms: [1] } }],
    [runs, { stream: { linger_ms: 1 } }],
    [acp, {}],
    [mcp, {}],
    [ahp, { settle_ms: 0, workspace }],
    [harn, {}],
  ];
  const doors = new Map<string, Closable>();
  for (const [{ name, parts }, config] of settings)
    doors.set(name, await parts.door!.open(config as never, { ...deps, name }).open(at.bridge));
  const link = linkDoor({ http, log: quiet, clock: at.clock, links, recipients: ['duty'] });
  doors.set(link.name, await link.open(at.bridge));
  const { url } = await http.listen();
  onTestFinished(async () => {
    for (const door of doors.values()) await door.close();
    await http.close();
  });
  return { at, url, workspace, links, doors };
}
