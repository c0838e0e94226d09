/**
 * An outside harness as a policy engine. It is one engine among others: our own rules come first and the strictest decision
 * counts. A timeout, an unreachable harness and an invalid response are a no, unless the harness only gives advice.
 */
import {
  type Action,
  type Actor,
  type Bridge,
  type Decision,
  type Deps,
  Fault,
  type PolicyEngine,
} from '../../../src/index.ts';
import type { UpstreamConfig } from '../config.ts';
import { manyMayListen, pause, wait } from '../timeout.ts';
import type { AhpEvent } from '../translate.ts';
import { createWorkers } from './agent-identity.ts';
import { createReasking } from './ask-again.ts';
import { toWireNews } from './event-notices.ts';
import { type Asking, createAsking } from './harness-client.ts';
import { HarnessError } from './harness-error.ts';
import { createNoticeQueue } from './notice-queue.ts';
import { toCoreAnswer, toCoreDecision, toWireQuestion } from './translate.ts';
import { type Credential, openLink } from './transports.ts';

export interface Upstream extends PolicyEngine {
  /** Queues a notification. Old ones are dropped for new ones, but never the outcome of a run. */
  notify(event: AhpEvent): void;
  /** Notifies it of the events of this gateway, until closed. */
  listen(bridge: Bridge, actor: Actor): void;
  /** Resolves when all notifications so far were sent or given up. */
  flushed(): Promise<void>;
  close(): Promise<void>;
}

/** A harness has one address and one credential. */
export function requireOneAddress({ url, socket, command, api_key, token }: UpstreamConfig): void {
  const targets = Object.entries({ url, socket, command }).flatMap(([word, said]) =>
    said === undefined ? [] : [word],
  );
  if (targets.length !== 1) {
    const found = targets.length === 0 ? 'none of them is there' : `${targets.join(' and ')} are there`;
    throw new Fault('invalid_request', `say where the harness is with one of url, socket and command; ${found}`);
  }
  if (api_key !== undefined && token !== undefined) {
    throw new Fault('invalid_request', 'the harness takes an api_key or a token, not both');
  }
  if (url !== undefined && !/^(https?|wss?):\/\//i.test(url)) {
    throw new Fault('invalid_request', `${url} is not an http(s) or ws(s) address`, { param: '/url' });
  }
}

const TIMEOUT_MS = 10_000;
/** The longest wait for a reconnect to a harness that was unreachable or hung. */
const AGAIN_MS = 1_000;
const QUEUE = 1_000;
/** After a failed attempt no caller waits for another one this soon. */
const FIRST_REST_MS = 100;
const LONGEST_REST_MS = 5_000;
const LAST_NEWS_MS = 500;

export function createUpstream(config: UpstreamConfig, deps: Pick<Deps, 'log' | 'clock' | 'ids' | 'secret'>): Upstream {
  requireOneAddress(config);
  const { timeout_ms: timeoutMs = TIMEOUT_MS, on_failure: onFailure = 'block', queue: most = QUEUE } = config;
  const name = `ahp:${config.name ?? config.url?.replace(/[?#].*$/, '') ?? config.socket ?? config.command?.[0] ?? 'harness'}`;
  const hop = config.hop ?? `tollbridge@${process.pid}`;
  const workers = createWorkers(hop);
  const closing = manyMayListen(new AbortController());
  let connected: Promise<Asking> | undefined;
  let rest = FIRST_REST_MS;
  let notBefore = 0;
  /** The last connection hung or could not be made. */
  let doubtful = false;

  async function credential(): Promise<Credential | undefined> {
    if (config.api_key) return { kind: 'api_key', value: await deps.secret(config.api_key) };
    if (config.token) return { kind: 'token', value: await deps.secret(config.token) };
    return undefined;
  }

  /** One shared connection; replaced when it was closed, with a pause between attempts. */
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
        doubtful = false;
        const cut = () => {
          lost();
          doubtful = true;
        };
        if (asking.cut.aborted) cut();
        else asking.cut.addEventListener('abort', cut, { once: true });
      },
      () => {
        lost();
        doubtful = true;
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
      await asking.handshake({ session_id: deps.ids.next('session'), agent_id: hop }, closing.signal);
      return asking;
    } catch (cause) {
      await link.close();
      throw cause;
    }
  }

  /** Its current decision in our words; `defer` unchanged. */
  async function ask(action: Action, signal: AbortSignal): Promise<Decision> {
    const question = toWireQuestion(action, workers.askingAgent(action), deps.clock.now());
    if (!question)
      return { verdict: 'allow', code: 'no_objection', reason: `${name} is not asked about this`, engine: name };
    try {
      return await overConnection(signal, async (asking) => {
        if (question.kind === 'query') return toCoreAnswer(await asking.query(question.query, signal), name);
        const { event } = question;
        const { maxDepth } = asking.welcome ?? {};
        if (maxDepth !== undefined && event.depth > maxDepth) {
          return { verdict: 'block', reason: 'harness depth limit', code: 'depth_limit', engine: name };
        }
        return toCoreDecision(action, event, await asking.event(event, signal), name);
      });
    } catch (cause) {
      const why = cause instanceof HarnessError ? cause.message : 'it could not be asked';
      deps.log.warn({ engine: name, why, on_failure: onFailure }, 'an outside harness gave no decision');
      return withoutDecision(`${name} gave no decision: ${why}`);
    }
  }

  /** When a connection is closed because another question hung on it, this question is asked once more. */
  async function overConnection<T>(signal: AbortSignal, ask: (asking: Asking) => Promise<T>): Promise<T> {
    const asking = await reached(signal);
    try {
      return await ask(asking);
    } catch (cause) {
      const lost = cause instanceof HarnessError && cause.kind === 'transport' && asking.hung;
      if (!lost || signal.aborted) throw cause;
      return await ask(await reached(signal));
    }
  }

  async function reached(signal: AbortSignal): Promise<Asking> {
    if (!doubtful) return await abortable(connection(), signal);
    const short = wait(AGAIN_MS, signal);
    try {
      return await abortable(connection(), short.signal);
    } finally {
      short.release();
    }
  }

  async function decide(action: Action, signal: AbortSignal): Promise<Decision> {
    const said = await ask(action, signal);
    if (said.verdict !== 'defer' || !reasking) return said;
    const { retry_after_ms = 0, ...rest } = said;
    reasking.putOff(action, retry_after_ms);
    return { ...rest, verdict: 'escalate' };
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

  const notices = createNoticeQueue({
    name,
    most,
    batches: config.batches_news ?? false,
    log: deps.log,
    closing: closing.signal,
    connection,
    restMs: () => notBefore - Date.now(),
  });
  const reasking =
    config.defer_means === 'approval'
      ? createReasking({
          engine: name,
          log: deps.log,
          closing: closing.signal,
          ask: (action) => ask(action, closing.signal),
        })
      : undefined;

  return {
    name,
    // The gate waits longer than we do, so that the reason is ours.
    extraTimeMs: timeoutMs + 500,
    decide,
    unanswered: () => withoutDecision(`${name} gave no decision: the harness did not answer in time`),
    notify: notices.send,
    listen(bridge, actor) {
      (async () => {
        const from = { stream: { of: 'all' }, after: 'now' } as const;
        for await (const event of bridge.follow(actor, from, closing.signal)) {
          reasking?.received(event, bridge);
          for (const news of toWireNews(event, workers.reportingAgent(event))) notices.send(news);
        }
      })().catch((cause) => deps.log.error({ err: cause }, 'an outside harness no longer receives notices'));
    },
    flushed: notices.flushed,
    async close() {
      // The outcome is also sent, if the harness is still connected.
      if (connected) await Promise.race([notices.flushed(), pause(LAST_NEWS_MS, closing.signal)]);
      closing.abort();
      const asking = await connected?.catch(() => undefined);
      await asking?.close();
    },
  };
}

/** Others may share the connection: an aborted wait does not close it. */
function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(new HarnessError('timeout', 'the harness did not answer in time'));
    if (signal.aborted) return stop();
    signal.addEventListener('abort', stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}
