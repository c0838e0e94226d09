/** What can be said about this protocol in a configuration, and what holds when nothing is said. */
import { isAbsolute } from 'node:path';
import {
  ClosedWord,
  type Deps,
  Fault,
  Id,
  type JsonObject,
  NonEmpty,
  OpenObject,
  type Static,
  Type,
} from '../../src/index.ts';
import { THOUGHTS, type Thoughts } from './thoughts.ts';

const Optional = Type.Optional;
const Ms = Type.Integer({ minimum: 1 });
const closed = { additionalProperties: false };
const MIB = 1024 * 1024;

// ---- An agent we start: agents.<name>.acp ----

export const backendSchema = Type.Object(
  {
    /** Program and arguments, as they are: no shell reads them. */
    command: Type.Array(NonEmpty, { minItems: 1 }),
    /** Where it works; the root of the workspace when absent. */
    cwd: Optional(NonEmpty),
    /** Variables for it: NAME → name of a secret in a vault. */
    env: Optional(Type.Record(Type.String(), NonEmpty)),
    /** Variables of ours it gets beside the few every program needs. */
    inherit: Optional(Type.Array(NonEmpty)),
    /** The mode it is put in before it works. Whoever writes `yolo` here has said so. */
    mode: Optional(NonEmpty),
    /** The login it is asked to use when it says it needs one. */
    auth_method: Optional(NonEmpty),
    /** What it thinks aloud: shown to editors that watch, published as a summary besides, or dropped. */
    thoughts: Optional(ClosedWord(THOUGHTS)),
    /** What we do for it, so that it goes through the gate. */
    hold: Optional(
      Type.Object(
        {
          fs: Optional(Type.Boolean()),
          terminal: Optional(Type.Boolean()),
          /** Files beyond the workspace: refused, or a matter for the rules like any other. */
          outside: Optional(ClosedWord(['refuse', 'rules'])),
          /** A command that is not let through: an error, or a terminal that says so and exits with 126. */
          blocked_terminal: Optional(ClosedWord(['exit126', 'error'])),
        },
        closed,
      ),
    ),
    /** Tool servers it is told of; ours, to hold its tools too. `token` names a secret. */
    mcp: Optional(Type.Array(Type.Object({ name: NonEmpty, url: NonEmpty, token: Optional(NonEmpty) }, closed))),
    description: Optional(NonEmpty),
    timeouts: Optional(
      Type.Object(
        {
          /** Until it has opened a session. */
          start_ms: Optional(Ms),
          /** It is ended when its session was quiet for so long, and started again when needed. */
          idle_ms: Optional(Ms),
          /** Not a word while it works and nothing is asked of us: it hangs. */
          stall_ms: Optional(Ms),
          /** How long it may take to stop after it was told to. */
          cancel_ms: Optional(Ms),
          /** Between end of input, SIGTERM and SIGKILL. */
          grace_ms: Optional(Ms),
        },
        closed,
      ),
    ),
  },
  closed,
);
export type AcpBackendConfig = Static<typeof backendSchema>;
export type BackendDeps = Pick<Deps, 'log' | 'clock' | 'ids' | 'secret'>;

export interface BackendSettings {
  readonly name: string;
  readonly command: readonly string[];
  readonly cwd: string | undefined;
  readonly env: Readonly<Record<string, string>>;
  readonly inherit: readonly string[];
  readonly mode: string | undefined;
  readonly authMethod: string | undefined;
  readonly thoughts: Thoughts;
  readonly fs: boolean;
  readonly terminal: boolean;
  readonly outside: 'refuse' | 'rules';
  readonly blockedTerminal: 'exit126' | 'error';
  readonly mcp: readonly { readonly name: string; readonly url: string; readonly token?: string }[];
  readonly startMs: number;
  readonly idleMs: number;
  readonly stallMs: number;
  readonly cancelMs: number;
  readonly graceMs: number;
}

export function backendSettingsOf(name: string, config: AcpBackendConfig): BackendSettings {
  const { hold = {}, timeouts = {} } = config;
  if (config.cwd !== undefined && !isAbsolute(config.cwd)) {
    throw new Fault('invalid_request', `agents.${name}.acp.cwd must be an absolute path`, { param: '/cwd' });
  }
  return {
    name,
    command: config.command,
    cwd: config.cwd,
    env: config.env ?? {},
    inherit: config.inherit ?? [],
    mode: config.mode,
    authMethod: config.auth_method,
    thoughts: config.thoughts ?? 'show',
    fs: hold.fs ?? true,
    terminal: hold.terminal ?? true,
    outside: hold.outside ?? 'refuse',
    blockedTerminal: hold.blocked_terminal ?? 'exit126',
    mcp: (config.mcp ?? []).map(({ name: server, url, token }) => ({ name: server, url, ...(token && { token }) })),
    startMs: timeouts.start_ms ?? 30_000,
    idleMs: timeouts.idle_ms ?? 15 * 60_000,
    stallMs: timeouts.stall_ms ?? 10 * 60_000,
    cancelMs: timeouts.cancel_ms ?? 10_000,
    graceMs: timeouts.grace_ms ?? 2_000,
  };
}

/** Pictures travel inside lines, so lines are long. */
export const LINE_LIMIT = 32 * MIB;

// ---- Our door: doors.acp ----

export const configSchema = Type.Object(
  {
    path: Optional(Type.Unsafe<string>({ type: 'string', pattern: '^/[A-Za-z0-9_/-]*[A-Za-z0-9_-]$' })),
    /** Where sessions are opened whatever directory an editor names. Absent: the workspace with that root. */
    workspace: Optional(Id),
    persona: Optional(Id),
    /** Who does the work; the default agent when absent. */
    agent: Optional(NonEmpty),
    /** The Harn profile: for clients that say they take it, for everyone, or for nobody. */
    harn: Optional(ClosedWord(['auto', 'on', 'off'])),
    /** What `_harn/providerCatalog` is answered with; without it the call is not offered. */
    provider_catalog: Optional(OpenObject),
    /** What becomes of running work when its editor goes away: over a network it may come back. */
    on_disconnect: Optional(ClosedWord(['continue', 'cancel'])),
    line_limit: Optional(Type.Integer({ minimum: 1024 })),
    /** How long a connection without a stream is kept. */
    linger_ms: Optional(Ms),
    /** How many connections one caller may hold. */
    connections: Optional(Type.Integer({ minimum: 1 })),
    /** How often whoever holds a connection has to be still who they were. */
    recheck_ms: Optional(Ms),
  },
  closed,
);
export type AcpConfig = Static<typeof configSchema>;

export interface AcpSettings {
  readonly path: string;
  readonly workspace: string | undefined;
  readonly persona: string | undefined;
  readonly agent: string | undefined;
  readonly harn: 'auto' | 'on' | 'off';
  readonly catalog: JsonObject | undefined;
  readonly onDisconnect: 'continue' | 'cancel' | undefined;
  readonly lineLimit: number;
  readonly lingerMs: number;
  readonly connections: number;
  readonly recheckMs: number;
}

export function settingsOf(config: AcpConfig): AcpSettings {
  return {
    path: config.path ?? '/acp',
    workspace: config.workspace,
    persona: config.persona,
    agent: config.agent,
    harn: config.harn ?? 'auto',
    catalog: config.provider_catalog as JsonObject | undefined,
    onDisconnect: config.on_disconnect,
    lineLimit: config.line_limit ?? LINE_LIMIT,
    lingerMs: config.linger_ms ?? 5 * 60_000,
    connections: config.connections ?? 64,
    recheckMs: config.recheck_ms ?? 15_000,
  };
}
