/** The configuration of a remote Harness and its defaults. */
import { ClosedWord, type Deps, Id, NonEmpty, type Static, Type } from '../../../src/index.ts';
import { remoteBase } from '../../../src/transport/outbound/remote.ts';
import { Timeouts, timeoutsOf } from '../../../src/transport/outbound/remote-work.ts';

const Optional = Type.Optional;

export const backendSchema = Type.Object(
  {
    /** Where it is: the part before `/v1`. */
    url: NonEmpty,
    /** The name tasks ask for it by. */
    name: Optional(NonEmpty),
    /** The secret that holds its token. Sent to `url` and nowhere else. */
    secret: Optional(NonEmpty),
    /** Where its sessions are opened; the first workspace it shows us when absent. */
    workspace_id: Optional(Id),
    persona_id: Optional(Id),
    /** Which of its agents does the work, for servers that have several. */
    agent: Optional(NonEmpty),
    /** `checked`: a receipt that does not verify is noted. `required`: without a valid one the task fails. */
    receipts: Optional(ClosedWord(['required', 'checked', 'ignored'])),
    /** Allows plain http to another machine, where the token can be read in transit. */
    insecure: Optional(Type.Boolean()),
    timeouts: Optional(Timeouts),
    artifact_limit: Optional(Type.Integer({ minimum: 0 })),
  },
  { additionalProperties: false },
);
export type HarnBackendConfig = Static<typeof backendSchema>;

export type BackendDeps = Pick<Deps, 'log' | 'clock' | 'secret'>;

export function backendSettingsOf(config: HarnBackendConfig) {
  const base = remoteBase(config.url, config.insecure);
  return {
    name: config.name ?? 'harn',
    base,
    secret: config.secret,
    workspaceId: config.workspace_id,
    personaId: config.persona_id,
    agent: config.agent,
    receipts: config.receipts ?? 'checked',
    ...timeoutsOf(config.timeouts),
    artifactLimit: config.artifact_limit ?? 64 * 1024 * 1024,
  };
}
export type BackendSettings = Readonly<ReturnType<typeof backendSettingsOf>>;
