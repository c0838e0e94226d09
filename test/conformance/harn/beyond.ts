/** What the protocol's text asks and the public suite does not look at. */
import { asking } from './asks.ts';
import { auth } from './auth.ts';
import { errors } from './errors.ts';
import { events } from './events.ts';
import { hosts } from './hosts.ts';
import { lifecycle } from './lifecycle.ts';
import { memories } from './memories.ts';
import { once } from './once.ts';
import { pages } from './pages.ts';
import { privacy } from './privacy.ts';
import { promises } from './promises.ts';
import { pruned } from './pruned.ts';
import { receipts } from './receipts.ts';
import { recovery } from './recovery.ts';
import { replays } from './replays.ts';
import { resources } from './resources.ts';
import type { Revision } from './revision.ts';
import { scopes } from './scopes.ts';
import { sessions } from './sessions.ts';
import { sockets } from './sockets.ts';
import { state } from './state.ts';
import { streams } from './streams.ts';
import type { Category } from './suite.ts';
import { tenants } from './tenants.ts';
import { vaults } from './vaults.ts';
import { versions } from './versions.ts';

export const beyond = (revision: Revision): readonly Category[] => [
  versions(revision),
  auth,
  scopes,
  tenants,
  errors,
  pages,
  once(revision),
  lifecycle(revision),
  asking,
  sessions,
  events,
  streams,
  sockets,
  hosts,
  receipts,
  replays,
  resources,
  promises,
  vaults,
  memories,
  state,
  privacy,
  recovery,
  ...revision.own,
  // Last: what other checks made is let go as well.
  pruned,
];
