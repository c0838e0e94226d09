/**
 * A server that each caller uses with credentials of its own. Every caller has a backend of its own behind this one: connections,
 * sessions, lists and caches are made with its credentials and are for it alone. A caller that has to sign in first sees one tool of
 * the gateway's instead of the server's. Requests of the gateway itself have no credentials here, and get nothing.
 */
import { CODES, type Era, LATEST_LEGACY, LEGACY, MODERN } from '../../../../mappings/mcp.ts';
import {
  type Actor,
  asText,
  Fault,
  isObject,
  type JsonObject,
  LruMap,
  type PassedRequest,
  type Skill,
  type ToolBackend,
  type ToolResult,
} from '../../../../src/index.ts';
import type { UpstreamConfig } from '../../config.ts';
import { failed } from '../../frames.ts';
import { isMcpRequestContext, type McpRequestContext } from '../../request-context.ts';
import { toSkill } from '../../translate.ts';
import { createIdle } from '../idle.ts';
import { createUpstream } from '../tool-backend.ts';
import { CLIENT_INFO } from '../transport/create-transport.ts';
import { type CallerAuth, type CallerAuthDeps, createCallerSource } from './caller-auth.ts';
import { SIGN_IN, SignInRequired } from './sign-in-required.ts';

type PerCallerDeps = CallerAuthDeps & Parameters<typeof createUpstream>[2];

/** As long as a client's session may be unused. */
const IDLE_MS = 60 * 60_000;
const MOST_CALLERS = 10_000;

interface Own {
  readonly backend: ToolBackend;
  readonly auth: CallerAuth;
  /** Watches the server's lists while this caller uses it and at least one listener is registered; otherwise stops. */
  settle(): void;
  close(): Promise<void>;
}

export function createPerCaller(name: string, config: UpstreamConfig, deps: PerCallerDeps): ToolBackend {
  const { sign_in: _s, exchange: _e, caller_tokens: _c, ...plain } = config;
  const source = createCallerSource(name, config, deps);
  const callers = new LruMap<string, Own>(MOST_CALLERS);
  const open = new Set<Own>();
  const listeners = new Set<(list: string) => void>();
  const changed = (list: string) => {
    for (const listener of [...listeners]) listener(list);
  };
  /** Opens nothing unless it is asked something, and then fails. */
  const nobody = createUpstream(name, plain, { ...deps, auth: { headers: () => Promise.reject(withoutCaller(name)) } });

  /** The gateway's tool was decided on as the gateway's: a tool of the server that has its name is never called in its place. */
  const isOurs = (tool: string | undefined) => tool === SIGN_IN && source.kind === 'sign_in';
  const filtered = new WeakMap<readonly Skill[], readonly Skill[]>();
  function theirs(skills: readonly Skill[]): readonly Skill[] {
    if (!skills.some((skill) => isOurs(skill.name))) return skills;
    const known = filtered.get(skills) ?? skills.filter((skill) => !isOurs(skill.name));
    filtered.set(skills, known);
    return known;
  }

  const extended = new WeakMap<readonly Skill[], readonly Skill[]>();
  function withSignIn(skills: readonly Skill[]): readonly Skill[] {
    const known = extended.get(skills) ?? [...skills, ...signInSkills(name, deps.clock.now())];
    extended.set(skills, known);
    return known;
  }

  function ownOf(actor: Actor): Own {
    const auth = source.authOf(actor);
    let inner: ToolBackend | undefined;
    let unwatch: (() => void) | undefined;
    let used = false;
    let busy = 0;
    const idle = createIdle(IDLE_MS, () => (busy > 0 ? idle.used() : void letGo()));

    async function letGo(): Promise<void> {
      idle.stop();
      const closing = inner;
      unwatch?.();
      [inner, unwatch, used] = [undefined, undefined, false];
      open.delete(own);
      await closing?.close?.();
    }

    function settle(): void {
      if (listeners.size > 0 && used) unwatch ??= inner?.watch?.(changed);
      else {
        unwatch?.();
        unwatch = undefined;
      }
    }

    async function within<T>(work: (backend: ToolBackend) => Promise<T>): Promise<T> {
      inner ??= createUpstream(name, plain, { ...deps, auth });
      open.add(own);
      busy += 1;
      try {
        return await work(inner);
      } finally {
        busy -= 1;
        idle.used();
      }
    }

    /** Undefined when the caller has credentials; others than a missing sign-in are thrown. */
    async function lacking(): Promise<SignInRequired | undefined> {
      return await auth.require().then(
        () => undefined,
        (thrown) => {
          if (thrown instanceof SignInRequired) return thrown;
          throw thrown;
        },
      );
    }

    const backend: ToolBackend = {
      name,
      pinned: true,
      async list(sessionId) {
        if (await lacking()) return signInSkills(name, deps.clock.now());
        try {
          const skills = await within((one) => one.list(sessionId));
          used = true;
          settle();
          return auth.refusal ? withSignIn(theirs(skills)) : theirs(skills);
        } catch (thrown) {
          if (thrown instanceof SignInRequired) return signInSkills(name, deps.clock.now());
          throw thrown;
        }
      },
      async requireListed() {
        const required = (await lacking()) ?? auth.refusal;
        if (required) throw required;
      },
      effect: (tool) => (isOurs(tool) ? 'none' : inner?.effect?.(tool)),
      // Rules can match where the caller's account comes from, and decisions on record name it.
      attributes: (tool, sessionId) => ({
        ...(isOurs(tool) ? OUR_ATTRIBUTES : (inner ?? nobody).attributes?.(tool, sessionId)),
        account: source.kind,
      }),
      ...(nobody.taints && { taints: nobody.taints }),
      async call(action, signal, context, reference) {
        const required = await lacking().catch((thrown) => asResult(name, thrown));
        if (required && !(required instanceof SignInRequired)) return required;
        if (isOurs(action.tool)) {
          const open = required ?? auth.refusal;
          if (!open) return SIGNED_IN;
          const client = isMcpRequestContext(context) ? context : undefined;
          const came = await signIn(auth, open, action.arguments, client).catch((thrown) => asResult(name, thrown));
          if (came.status === 'ok') changed('tools');
          return came;
        }
        if (required) return asResult(name, required);
        return await within((one) => one.call(action, signal, context, reference));
      },
      async pass(request, signal, context, inspect) {
        const required = await lacking().catch((thrown) => asError(thrown));
        const { era } = isMcpRequestContext(context) ? context : { era: 'legacy' as const };
        if (required instanceof SignInRequired) return beforeSignIn(request, era, required);
        if (required) return required;
        const outcome = await within(async (one) => (await one.pass?.(request, signal, context, inspect)) ?? {});
        const { refusal } = auth;
        if (!refusal || request.method !== 'tools/list') return outcome;
        return 'error' in outcome ? beforeSignIn(request, era, refusal) : offering(outcome);
      },
    };
    const own: Own = { backend, auth, settle, close: letGo };
    return own;
  }

  const { unlisted: _u, ...common } = nobody;
  const shared: ToolBackend = {
    ...common,
    list: async () => [],
    forCaller(actor) {
      // The gateway itself is no caller.
      if (actor.kind === 'system') return shared;
      const key = source.keyOf(actor);
      const known = callers.get(key) ?? ownOf(actor);
      callers.set(key, known);
      known.auth.seen?.(actor);
      return known.backend;
    },
    watch(listener) {
      const one = (list: string) => listener(list);
      listeners.add(one);
      for (const own of open) own.settle();
      return () => {
        listeners.delete(one);
        for (const own of open) own.settle();
      };
    },
    async close() {
      source.close();
      listeners.clear();
      await Promise.all([nobody.close?.(), ...[...open].map((own) => own.close())]);
    },
  };
  return shared;
}

function withoutCaller(name: string): Fault {
  return new Fault('permission_denied', `${name} is used with credentials of each caller, and here is none`);
}

function asResult(name: string, thrown: unknown): ToolResult {
  const { kind, message, details } = thrown instanceof Fault ? thrown : new Fault('internal', 'something went wrong');
  const code = asText(details?.code ?? kind);
  return {
    status: 'error',
    output: null,
    error: thrown instanceof SignInRequired ? message : `${name}: ${message}`,
    code,
  };
}

function asError(thrown: unknown): JsonObject {
  if (!(thrown instanceof Fault)) throw thrown;
  return failed(CODES.internal, thrown.message, { code: thrown.kind }) as JsonObject;
}

const TOOL: JsonObject = {
  name: SIGN_IN,
  title: 'Sign in',
  description:
    'Connects your own account at this server. Without arguments it returns a link: open it in a browser and sign in. The page then shows a code; call this tool again with the code. After that the tools of the server are listed.',
  inputSchema: {
    type: 'object',
    properties: { code: { type: 'string', description: 'The code that the page shows after you have signed in' } },
    additionalProperties: false,
  },
  annotations: { readOnlyHint: true, openWorldHint: false },
};

const OUR_ATTRIBUTES = {
  read_only: true,
  destructive: false,
  open_world: false,
  trusted: true,
  tainted: false,
} as const;

/** The last page of a server's tools, with the gateway's. */
function offering(outcome: JsonObject): JsonObject {
  const { result } = outcome;
  if (!isObject(result) || !Array.isArray(result.tools) || result.nextCursor !== undefined) return outcome;
  return { ...outcome, result: { ...result, tools: [...result.tools, TOOL] } };
}

/** The same array each time, so that lists of an unchanged caller stay the same. */
const listed = new Map<string, readonly Skill[]>();

function signInSkills(server: string, now: string): readonly Skill[] {
  const known = listed.get(server);
  if (known) return known;
  const skill = toSkill(server, { name: SIGN_IN, tool: TOOL }, now);
  const made = [{ ...skill, metadata: { ...skill.metadata, gateway: true } }];
  listed.set(server, made);
  return made;
}

/** The gateway's tool: a link, or its page and then a form for the code where the client can show both. */
async function signIn(
  auth: CallerAuth,
  required: SignInRequired,
  { code }: JsonObject,
  context: McpRequestContext | undefined,
): Promise<ToolResult> {
  const entered = typeof code === 'string' && code !== '' ? code : await askForCode(required, context);
  if (entered === undefined) throw required;
  await auth.finish?.(entered);
  return SIGNED_IN;
}

const SIGNED_IN: ToolResult = {
  status: 'ok',
  output: { content: [{ type: 'text', text: 'Signed in. The tools of the server can be used.' }] },
};

/** Undefined where the client cannot be asked, or was and gave no code. */
async function askForCode(
  { link, message }: SignInRequired,
  context: McpRequestContext | undefined,
): Promise<string | undefined> {
  const { elicitation } = context?.capabilities ?? {};
  if (!context || !link || !isObject(elicitation) || elicitation.url === undefined) return undefined;
  const elicitationId = new URL(link).pathname;
  const page = { mode: 'url', message, url: link, ...(context.era === 'legacy' && { elicitationId }) };
  const opened = await ask(context, 'tollbridge_sign_in', page);
  if (opened?.action !== 'accept' || elicitation.form === undefined) return undefined;
  const form = {
    message: 'Tollbridge: the page shows a code once you have signed in.',
    requestedSchema: {
      type: 'object',
      properties: { code: { type: 'string', title: 'Code' } },
      required: ['code'],
    },
  };
  const filled = await ask(context, 'tollbridge_sign_in_code', form);
  const content = filled?.action === 'accept' && isObject(filled.content) ? filled.content : {};
  return typeof content.code === 'string' ? content.code : undefined;
}

async function ask(context: McpRequestContext, key: string, params: JsonObject): Promise<JsonObject | undefined> {
  const { inputResponses } = await context.input({ [key]: { method: 'elicitation/create', params } });
  const answer = inputResponses[key];
  return isObject(answer) ? answer : undefined;
}

/** Lets a client connect before its caller has signed in. Everything but tools is there once it connects again afterwards. */
function beforeSignIn({ method, params }: PassedRequest, era: Era, required: SignInRequired): JsonObject {
  const about = { capabilities: { tools: { listChanged: true } }, instructions: required.message };
  const uncached = era === 'modern' && { ttlMs: 0, cacheScope: 'private' };
  switch (method) {
    case 'initialize': {
      const { protocolVersion: wanted } = isObject(params) ? params : {};
      const protocolVersion = (LEGACY as readonly unknown[]).includes(wanted) ? (wanted as string) : LATEST_LEGACY;
      return { result: { protocolVersion, serverInfo: CLIENT_INFO, ...about } };
    }
    case 'server/discover':
      return { result: { supportedVersions: [MODERN], ...about, ...uncached } };
    case 'tools/list':
      return { result: { tools: [TOOL], ...uncached } };
    case 'notifications/initialized':
      return { result: {} };
    default:
      return failed(CODES.methodNotFound, required.message, { ...required.details }) as JsonObject;
  }
}
