/** What can be said about this door in a configuration, and what holds when nothing is said. */
import { Id, NonEmpty, type Static, Type } from '../../src/index.ts';

const Optional = Type.Optional;
const Ms = Type.Integer({ minimum: 1 });

export const configSchema = Type.Object(
  {
    /** Where runs go whose label names no workspace; the first the caller may see when absent. */
    workspace: Optional(Id),
    /** Which agent does them; the house's default when absent. */
    agent: Optional(NonEmpty),
    persona_id: Optional(Id),
    /** The whole API once more below this prefix, beside another door's health and OpenAPI; empty turns it off. */
    prefix: Optional(Type.Unsafe<string>({ type: 'string', pattern: '^(/[A-Za-z0-9_-]+)?$' })),
    stalled: Optional(
      Type.Object(
        {
          /** A worker that says nothing for so long has lost its heartbeat. */
          after_ms: Optional(Ms),
          /** How often to look. */
          sweep_ms: Optional(Ms),
          /** A run stalled for so long has failed. Never, when absent. */
          give_up_ms: Optional(Ms),
        },
        { additionalProperties: false },
      ),
    ),
    stream: Optional(
      Type.Object(
        {
          keep_alive_ms: Optional(Ms),
          /** How long a stream stays open after its run has ended, in case it is tried again. */
          linger_ms: Optional(Ms),
          /** How often a long connection has to show that its key still holds. */
          recheck_ms: Optional(Ms),
        },
        { additionalProperties: false },
      ),
    ),
  },
  { additionalProperties: false },
);
export type RunsConfig = Static<typeof configSchema>;

export interface RunsSettings {
  readonly workspace: string | undefined;
  readonly agent: string | undefined;
  readonly personaId: string | undefined;
  readonly prefix: string;
  readonly stallAfterMs: number;
  readonly sweepMs: number;
  readonly giveUpMs: number | undefined;
  readonly keepAliveMs: number;
  readonly lingerMs: number;
  readonly recheckMs: number;
}

export function settingsOf({
  workspace,
  agent,
  persona_id,
  prefix,
  stalled = {},
  stream = {},
}: RunsConfig): RunsSettings {
  return {
    workspace,
    agent,
    personaId: persona_id,
    prefix: prefix ?? '/agent-harness',
    stallAfterMs: stalled.after_ms ?? 10 * 60_000,
    sweepMs: stalled.sweep_ms ?? 10_000,
    giveUpMs: stalled.give_up_ms,
    keepAliveMs: stream.keep_alive_ms ?? 15_000,
    lingerMs: stream.linger_ms ?? 5_000,
    recheckMs: stream.recheck_ms ?? 15_000,
  };
}
