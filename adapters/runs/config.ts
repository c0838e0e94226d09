/** The configuration of this door and its defaults. */
import { ClosedWord, Id, NonEmpty, type Static, Type } from '../../src/index.ts';

const Optional = Type.Optional;
const Ms = Type.Integer({ minimum: 1 });
const RunClass = Type.Object({ time_ms: Optional(Ms) }, { additionalProperties: false });

export const configSchema = Type.Object(
  {
    /** The workspace for runs whose label names none; the first the caller may see when absent. */
    workspace: Optional(Id),
    /** The agent that does the runs; the configured default agent when absent. */
    agent: Optional(NonEmpty),
    persona_id: Optional(Id),
    /** Serves the whole API a second time below this prefix, since another door has `/health` and `/openapi.json`; empty turns it off. */
    prefix: Optional(Type.Unsafe<string>({ type: 'string', pattern: '^(/[A-Za-z0-9_-]+)?$' })),
    stalled: Optional(
      Type.Object(
        {
          /** A worker that gives no sign for this long has lost its heartbeat. */
          after_ms: Optional(Ms),
          /** How often runs are checked. */
          sweep_ms: Optional(Ms),
          /** A run stalled for so long has failed. Never, when absent. */
          give_up_ms: Optional(Ms),
        },
        { additionalProperties: false },
      ),
    ),
    /** How long a run of each class may take from its start; without a figure, as long as it likes. */
    classes: Optional(
      Type.Object(
        { short: Optional(RunClass), default: Optional(RunClass), long: Optional(RunClass) },
        { additionalProperties: false },
      ),
    ),
    /** What a question that is not answered in time does to its run: fails it, or lets the agent plan without the act. */
    unanswered: Optional(ClosedWord(['fail', 'replan'])),
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

export function settingsOf({
  workspace,
  agent,
  persona_id,
  prefix,
  stalled = {},
  classes = {},
  unanswered,
  stream = {},
}: RunsConfig) {
  return {
    workspace,
    agent,
    personaId: persona_id,
    prefix: prefix ?? '/agent-harness',
    stallAfterMs: stalled.after_ms ?? 10 * 60_000,
    sweepMs: stalled.sweep_ms ?? 10_000,
    giveUpMs: stalled.give_up_ms,
    /** By class; a class without a figure has no end. */
    classMs: {
      short: classes.short ? classes.short.time_ms : 10 * 60_000,
      default: classes.default ? classes.default.time_ms : 4 * 60 * 60_000,
      long: classes.long?.time_ms,
    },
    unanswered: unanswered ?? 'fail',
    keepAliveMs: stream.keep_alive_ms ?? 15_000,
    lingerMs: stream.linger_ms ?? 5_000,
    recheckMs: stream.recheck_ms ?? 15_000,
  };
}
export type RunsSettings = Readonly<ReturnType<typeof settingsOf>>;
