/** What the protocol's text asks and the public suite does not look at. */

import { auth } from './access/auth.ts';
import { privacy } from './access/privacy.ts';
import { scopes } from './access/scopes.ts';
import { tenants } from './access/tenants.ts';
import { vaults } from './access/vaults.ts';
import { versions } from './access/versions.ts';
import type { Revision } from './harness/revision.ts';
import type { Category } from './harness/suite.ts';
import { promises } from './promises.ts';
import { memories } from './resources/memories.ts';
import { pages } from './resources/pages.ts';
import { resources } from './resources/resources.ts';
import { sessions } from './resources/sessions.ts';
import { state } from './resources/state.ts';
import { events } from './streams/events.ts';
import { sockets } from './streams/sockets.ts';
import { streams } from './streams/streams.ts';
import { asking } from './tasks/asks.ts';
import { errors } from './tasks/errors.ts';
import { hosts } from './tasks/hosts.ts';
import { lifecycle } from './tasks/lifecycle.ts';
import { once } from './tasks/once.ts';
import { pruned } from './tasks/pruned.ts';
import { receipts } from './tasks/receipts.ts';
import { recovery } from './tasks/recovery.ts';
import { replays } from './tasks/replays.ts';

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
