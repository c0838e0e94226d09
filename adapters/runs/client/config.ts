/** The configuration of a remote Agent Harness and its defaults. */

import { ROUTING_HINTS, RUN_CLASSES } from '../../../mappings/runs.ts';
import { ClosedWord, type Deps, NonEmpty, OpenObject, type Static, Type } from '../../../src/index.ts';
import { remoteBase } from '../../../src/transport/outbound/remote.ts';
import { Timeouts, timeoutsOf } from '../../../src/transport/outbound/remote-work.ts';

const Optional = Type.Optional;

export const backendSchema = Type.Object(
  {
    /** Where it is: the part before `/v1`. */
    url: NonEmpty,
    /** The secret that holds its key, as `key_id:secret`. Sent to `url` and nowhere else. */
    secret: Optional(NonEmpty),
    /** Attribution, as the remote knows it. */
    workspace_id: Optional(NonEmpty),
    subject_id: Optional(NonEmpty),
    run_class: Optional(ClosedWord(RUN_CLASSES)),
    routing_hint: Optional(ClosedWord(ROUTING_HINTS)),
    /** The member of `input` that holds the message: `user_query` unless named otherwise. */
    input_member: Optional(NonEmpty),
    /** Sent with every run. */
    metadata: Optional(OpenObject),
    /** `resume`: a run that stalls is resumed, once each time. `wait`: it is left to its operator. */
    on_stalled: Optional(ClosedWord(['resume', 'wait'])),
    /** Allows plain http to another machine, where the key can be read in transit. */
    insecure: Optional(Type.Boolean()),
    timeouts: Optional(Timeouts),
  },
  { additionalProperties: false },
);
export type RunsBackendConfig = Static<typeof backendSchema>;

export type BackendDeps = Pick<Deps, 'log' | 'secret'>;

export function backendSettingsOf(name: string, config: RunsBackendConfig) {
  const { workspace_id, subject_id, run_class, routing_hint } = config;
  return {
    name,
    base: remoteBase(config.url, config.insecure),
    secret: config.secret,
    /** Members of every new run. */
    body: {
      ...(workspace_id && { workspace_id }),
      ...(subject_id && { subject_id }),
      ...(run_class && { run_class }),
      ...(routing_hint && { routing_hint }),
    },
    metadata: config.metadata ?? {},
    inputMember: config.input_member ?? 'user_query',
    resumes: config.on_stalled !== 'wait',
    ...timeoutsOf(config.timeouts),
  };
}
export type BackendSettings = Readonly<ReturnType<typeof backendSettingsOf>>;
