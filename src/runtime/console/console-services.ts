/** What the console is given: sign-in, and the parts of the runtime that its own routes show. Composition, no logic. */
import { type ApiKeys, keyIdOf } from '../../auth/api-keys.ts';
import { createConsoleOidc } from '../../auth/console-oidc.ts';
import { type ConsoleSessions, consoleToken } from '../../auth/console-sessions.ts';
import type { ConsoleServices } from '../../console/services.ts';
import { systemClock } from '../../core/clock.ts';
import type { PinBody } from '../../core/tools/pins.ts';
import type { Actor } from '../../model/actions.ts';
import { Fault } from '../../model/faults.ts';
import type { Adapter, Deps } from '../../ports/index.ts';
import { consistencyProof, inclusionProof } from '../../receipt/merkle/proofs.ts';
import { lastLogHead } from '../../receipt/seal/checkpoints.ts';
import { signTreeHead } from '../../receipt/seal/tree-head.ts';
import type { WitnessState } from '../../witness/send.ts';
import type { CoreRuntime } from '../assemble.ts';
import type { Config } from '../config/config.ts';
import { acceptedPin, statedEffect } from './accepted-pin.ts';
import { consoleRules } from './console-rules.ts';
import { ownHealth } from './health.ts';

export interface ConsoleParts {
  readonly runtime: {
    readonly deps: Pick<Deps, 'authenticate' | 'secret'>;
    readonly core: Pick<CoreRuntime, 'store' | 'log' | 'policy' | 'keyring'>;
    readonly config: () => Config;
  };
  readonly sessions: ConsoleSessions;
  readonly keys: ApiKeys;
  readonly doors: readonly string[];
  readonly adapters: readonly Adapter[];
  readonly lastUse: ReadonlyMap<string, string>;
  readonly witnesses: () => ReadonlyMap<string, WitnessState>;
}

/** The person who opened the printed link: anyone who could read this process's output. */
const LINK_HOLDER = { id: 'local:console', kind: 'person', scopes: ['*'] } as const;

export function consoleServices({
  runtime,
  sessions,
  keys,
  doors,
  adapters,
  witnesses,
  lastUse,
}: ConsoleParts): ConsoleServices {
  const { store } = runtime.core;
  const { oauth } = runtime.config();
  const oidc =
    oauth?.signIn &&
    createConsoleOidc({
      oauth: { ...oauth, signIn: oauth.signIn },
      clock: systemClock,
      secret: runtime.deps.secret,
      mac: (text) => runtime.core.keyring.signer().mac(text),
    });
  /** A statement about the receipts as they are now. It is not written: the log has heads of its own, taken as it grows. */
  async function signedHead() {
    const tree = await store.tree();
    return { tree, head: signTreeHead(tree, systemClock.now(), runtime.core.keyring.signer()) };
  }

  return {
    signIn: {
      async withCode(code, host) {
        if (!(await sessions.useCode(code))) return undefined;
        return await sessions.open({ host, how: 'link', actor: { ...LINK_HOLDER, scopes: [...LINK_HOLDER.scopes] } });
      },
      async withKey(key, host, address) {
        const actor = await runtime.deps.authenticate(key, { door: 'harn', address });
        const key_id = keyIdOf(key);
        if (!key_id) throw new Fault('unauthenticated', 'this is not an API key');
        return await sessions.open({ host, how: 'key', key_id, actor: person(actor) });
      },
      oidc: oidc && {
        name: oidc.name,
        begin: oidc.begin,
        async end(answer, origin, host) {
          const actor = await oidc.end(answer, origin);
          return await sessions.open({ host, how: 'oauth', actor: person({ ...actor, kind: 'person' }) });
        },
      },
      find: sessions.find,
      end: sessions.end,
      token: consoleToken,
    },
    tip: () => store.tip({ of: 'all' }),
    rules: consoleRules({ core: runtime.core, config: runtime.config }),
    doors: () => doors.map((name) => ({ name, protocol: name, open: true })),
    keys: async () => (await keys.list()).map((key) => ({ ...key, last_used_at: lastUse.get(key.id) ?? null })),
    async proof(from) {
      const { tree, head } = await signedHead();
      const consistency =
        from === undefined || from > tree.size ? null : await consistencyProof(from, tree.size, store.nodes);
      const witnessed = Object.entries(runtime.config().witness).map(([name, where]) => {
        const { kept = null, trouble = null } = witnesses().get(name) ?? {};
        return { name, by: 'file' in where ? 'file' : 'url', kept, trouble };
      });
      const log = (await lastLogHead(store)) ?? null;
      return { head, consistency, log, witnesses: witnessed };
    },
    async inclusion(id) {
      const { tree, head } = await signedHead();
      const stored = await store.receipt(id);
      if (!stored || stored.position >= tree.size) throw new Fault('not_found', `there is no receipt ${id}`);
      const { chain, index, position } = stored;
      const [before] = index > 0 ? await store.receipts({ chain, index: index - 1, limit: 1 }) : [];
      return {
        head,
        inclusion: await inclusionProof(position, tree.size, store.nodes),
        before: before?.receipt.receipt_id,
      };
    },
    views: () => new Map(adapters.flatMap(({ name, view }) => (view ? [[name, view()]] : []))),
    health: () => ownHealth(store, runtime.core.keyring),
    // Definitions that the route has read from pins of ours.
    acceptedPin: (definition, by) => acceptedPin(definition as unknown as PinBody, by),
    statedEffect: (definition) => statedEffect(definition as unknown as PinBody),
    parts: () => {
      const { agents, tools, harnesses } = runtime.config();
      return Object.entries({ agent: agents, tools, harness: harnesses }).flatMap(([kind, named]) =>
        Object.entries(named).map(([name, section]) => ({ kind, name, protocol: Object.keys(section)[0] ?? '' })),
      );
    },
  };
}

/** Agents answer for no one, so none of them signs in where people answer. */
function person({ id, kind, scopes, tenant_id, workspaces, agents }: Actor) {
  if (kind !== 'person' && kind !== 'service') throw new Fault('permission_denied', 'the console is for people');
  return {
    id,
    kind,
    scopes: [...scopes],
    ...(tenant_id && { tenant_id }),
    ...(workspaces && { workspaces: [...workspaces] }),
    ...(agents && { agents: [...agents] }),
  };
}
