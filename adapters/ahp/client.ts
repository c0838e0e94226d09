/**
 * An outside harness that decides for us. It is one engine among others: our own rules come first and the strictest word
 * counts. Its silence, its absence and anything that is not a decision are a no, unless it was only ever asked for advice.
 */
import type { Action, Actor, Bridge, Decision, Deps, PolicyEngine } from '../../src/index.ts';
import { type Asking, createAsking } from './asking.ts';
import type { UpstreamConfig } from './config.ts';
import { HarnessError } from './harness-error.ts';
import { type Credential, openLink } from './links.ts';
import type { AhpEvent } from './translate.ts';
import { toCoreDecision, toWireQuestion, toWireTelling } from './upstream.ts';

export interface Upstream extends PolicyEngine {
  /** Something to tell it when there is time. Old news is dropped for new, but never how a run went. */
  tell(event: AhpEvent): void;
  /** Tells it what happens in this house, until closed. */
  listen(bridge: Bridge, actor: Actor): void;
  /** Resolves when everything told so far has been sent or given up. */
  told(): Promise<void>;
  close(): Promise<void>;
}

const TIMEOUT_MS = 10_000;
const QUEUE = 1_000;
/** After a failed attempt nobody is kept waiting for another one this soon. */
const FIRST_REST_MS = 100;
const LONGEST_REST_MS = 5_000;

export function createUpstream(config: UpstreamConfig, deps: Pick<Deps, 'log' | 'clock' | 'ids' | 'secret'>): Upstream {
  const { timeout_ms: timeoutMs = TIMEOUT_MS, on_failure: onFailure = 'block', queue: most = QUEUE } = config;
  const name = `ahp:${config.name ?? config.url?.replace(/[?#].*$/, '') ?? config.socket ?? config.command?.[0] ?? 'harness'}`;
  const hop = config.hop ?? `tollbridge@${process.pid}`;
  const closing = new AbortController();
  const waiting: AhpEvent[] = [];
  let connected: Promise<Asking> | undefined;
  let sending: Promise<void> | undefined;
  let rest = FIRST_REST_MS;
  let notBefore = 0;

  async function credential(): Promise<Credential | undefined> {
    if (config.api_key) return { kind: 'api_key', value: await deps.secret(config.api_key) };
    if (config.token) return { kind: 'token', value: await deps.secret(config.token) };
    return undefined;
  }

  /** One connection, shared; a new one when it was cut, and not more often than makes sense. */
  function connection(): Promise<Asking> {
    if (connected) return connected;
    if (closing.signal.aborted) return Promise.reject(new HarnessError('transport', 'we are shutting down'));
    if (Date.now() < notBefore) return Promise.reject(new HarnessError('transport', 'the harness cannot be reached'));
    const made = connect();
    connected = made;
    const lost = () => {
      if (connected === made) connected = undefined;
    };
    made.then(
      (asking) => {
        rest = FIRST_REST_MS;
        if (asking.cut.aborted) lost();
        else asking.cut.addEventListener('abort', lost, { once: true });
      },
      () => {
        lost();
        notBefore = Date.now() + rest;
        rest = Math.min(rest * 2, LONGEST_REST_MS);
      },
    );
    return made;
  }

  async function connect(): Promise<Asking> {
    const link = await openLink(config, await credential(), deps.log);
    const asking = createAsking(link, () => crypto.randomUUID(), timeoutMs);
    try {
      await asking.handshake({ session_id: deps.ids.next('session'), agent_id: hop });
      return asking;
    } catch (cause) {
      await link.close();
      throw cause;
    }
  }

  async function decide(action: Action, signal: AbortSignal): Promise<Decision> {
    const question = toWireQuestion(action, hop, deps.clock.now());
    if (!question)
      return { verdict: 'allow', code: 'no_objection', reason: `${name} is not asked about this`, engine: name };
    try {
      const asking = await abortable(connection(), signal);
      const { maxDepth } = asking.welcome ?? {};
      if (maxDepth !== undefined && question.depth > maxDepth) {
        return { verdict: 'block', reason: 'harness depth limit', code: 'depth_limit', engine: name };
      }
      const said = await asking.event(question, signal);
      return toCoreDecision(action, question, said, { engine: name, deferMeans: config.defer_means ?? 'retry' });
    } catch (cause) {
      const why = cause instanceof HarnessError ? cause.message : 'it could not be asked';
      deps.log.warn({ engine: name, why, on_failure: onFailure }, 'an outside harness gave no decision');
      return withoutDecision(`${name} gave no decision: ${why}`);
    }
  }

  function withoutDecision(reason: string): Decision {
    switch (onFailure) {
      case 'ignore':
        return { verdict: 'allow', code: 'no_objection', reason: `${reason}; it only advises`, engine: name };
      case 'escalate':
        return { verdict: 'escalate', code: 'harness_failed', reason, engine: name };
      case 'block':
        return { verdict: 'block', code: 'harness_failed', reason, engine: name };
    }
  }

  function tell(event: AhpEvent): void {
    if (closing.signal.aborted) return;
    if (waiting.length >= most) {
      const oldest = waiting.findIndex(({ event_type }) => event_type !== 'run_lifecycle');
      if (oldest < 0) return;
      waiting.splice(oldest, 1);
    }
    waiting.push(event);
    sending ??= send().finally(() => {
      sending = undefined;
    });
  }

  async function send(): Promise<void> {
    while (waiting.length > 0 && !closing.signal.aborted) {
      let next = waiting[0];
      try {
        const asking = await connection();
        // It may have been dropped for newer ones while nobody could be told.
        next = waiting[0];
        // Harnesses before 2.4 do not know the words of the run contracts.
        const known = Number(asking.welcome?.version.split('.')[1] ?? 0) >= 4;
        if (next && (known || !CONTRACTS.has(next.event_type))) await asking.notify(next);
      } catch (cause) {
        deps.log.warn({ engine: name, err: cause }, 'something could not be told to an outside harness');
        if (next && next.event_type === 'run_lifecycle' && !closing.signal.aborted) {
          await pause(Math.max(10, notBefore - Date.now()), closing.signal);
          continue;
        }
      }
      const at = waiting.indexOf(next as AhpEvent);
      if (at >= 0) waiting.splice(at, 1);
    }
  }

  return {
    name,
    // The gate waits until we have given up ourselves: then the reason is ours to give.
    patienceMs: timeoutMs + 500,
    decide,
    tell,
    listen(bridge, actor) {
      (async () => {
        const from = { stream: { of: 'all' }, after: 'now' } as const;
        for await (const event of bridge.follow(actor, from, closing.signal)) {
          const told = toWireTelling(event, hop);
          if (told) tell(told);
        }
      })().catch((cause) => deps.log.error({ err: cause }, 'an outside harness is no longer told what happens'));
    },
    async told() {
      await sending;
    },
    async close() {
      closing.abort();
      const asking = await connected?.catch(() => undefined);
      await asking?.close();
    },
  };
}

const CONTRACTS = new Set(['run_lifecycle', 'task_list', 'verification']);

/** The connection may be for others too: giving up waiting for it does not give it up. */
function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(new HarnessError('timeout', 'the harness did not answer in time'));
    if (signal.aborted) return stop();
    signal.addEventListener('abort', stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener(
      'abort',
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}
