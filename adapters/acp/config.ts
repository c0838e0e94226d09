/** The configuration of ACP doors and agents, and its defaults. */
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
import { THOUGHTS } from './server/render-thoughts.ts';

const Optional = Type.Optional;
const Ms = Type.Integer({ minimum: 1 });
const closed = { additionalProperties: false };
const MIB = 1024 * 1024;

// ---- An agent we start: agents.<name>.acp ----

export const backendSchema = Type.Object(
  {
    /** Program and arguments, started without a shell. */
    command: Type.Array(NonEmpty, { minItems: 1 }),
    /** The working directory; the root of the workspace when absent. */
    cwd: Optional(NonEmpty),
    /** Its environment: NAME → name of a secret in a vault. */
    env: Optional(Type.Record(Type.String(), NonEmpty)),
    /** Our variables that it inherits beside the few every program needs. */
    inherit: Optional(Type.Array(NonEmpty)),
    /** The mode it is set to before it works. `yolo` here is an explicit choice. */
    mode: Optional(NonEmpty),
    /** The login method to use when it requires one. */
    auth_method: Optional(NonEmpty),
    /** Its reasoning: shown to editors that watch, also published as a summary, or dropped. */
    thoughts: Optional(ClosedWord(THOUGHTS)),
    /** Which acts we perform for it, so that they go through the gate. */
    hold: Optional(
      Type.Object(
        {
          fs: Optional(Type.Boolean()),
          terminal: Optional(Type.Boolean()),
          /** Files outside the workspace: refused, or left to the rules. */
          outside: Optional(ClosedWord(['refuse', 'rules'])),
          /** A command that is denied: an error, or a terminal that shows the reason and exits with 126. */
          blocked_terminal: Optional(ClosedWord(['exit126', 'error'])),
        },
        closed,
      ),
    ),
    /** MCP servers it is given; ours, so that its tools are held too. `token` names a secret. */
    mcp: Optional(Type.Array(Type.Object({ name: NonEmpty, url: NonEmpty, token: Optional(NonEmpty) }, closed))),
    description: Optional(NonEmpty),
    timeouts: Optional(
      Type.Object(
        {
          /** Time limit for opening a session. */
          start_ms: Optional(Ms),
          /** An idle session's process is ended after this time, and started again when needed. */
          idle_ms: Optional(Ms),
          /** Silence while it works, with no request to us in progress, for this time counts as stalled. */
          stall_ms: Optional(Ms),
          /** How long it may take to stop after a cancel. */
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

export function backendSettingsOf(name: string, config: AcpBackendConfig) {
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
export type BackendSettings = Readonly<ReturnType<typeof backendSettingsOf>>;

/** Pictures are sent inside lines, so lines are long. */
export const LINE_LIMIT = 32 * MIB;

// ---- Our door: doors.acp ----

export const configSchema = Type.Object(
  {
    path: Optional(Type.Unsafe<string>({ type: 'string', pattern: '^/[A-Za-z0-9_/-]*[A-Za-z0-9_-]$' })),
    /** The workspace of all sessions, whatever directory an editor names. Absent: the workspace with that root. */
    workspace: Optional(Id),
    persona: Optional(Id),
    /** The agent that does the work; the default agent when absent. */
    agent: Optional(NonEmpty),
    /** The Harn profile: for clients that declare it, for all, or for none. */
    harn: Optional(ClosedWord(['auto', 'on', 'off'])),
    /** The result of `_harn/providerCatalog`; without it the call is not offered. */
    provider_catalog: Optional(OpenObject),
    /** Whether running work continues when its editor disconnects: a remote editor may come back. */
    on_disconnect: Optional(ClosedWord(['continue', 'cancel'])),
    line_limit: Optional(Type.Integer({ minimum: 1024 })),
    /** How long a connection without a stream is kept. */
    linger_ms: Optional(Ms),
    /** The most connections of one caller. */
    connections: Optional(Type.Integer({ minimum: 1 })),
    /** How often the token of an open connection is verified again. */
    recheck_ms: Optional(Ms),
  },
  closed,
);
export type AcpConfig = Static<typeof configSchema>;

export function settingsOf(config: AcpConfig) {
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
export type AcpSettings = Readonly<ReturnType<typeof settingsOf>>;
