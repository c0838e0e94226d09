/**
 * Sends signed heads of our log to witnesses: a file elsewhere, or another gateway. When a witness refuses a head
 * because it does not extend the witness's last one, an error is logged: this log was rolled back, or it is another
 * one.
 */
import type { Logger, Store } from '../ports/index.ts';
import { type ConsistencyProof, consistencyProof } from '../receipt/merkle/proofs.ts';
import type { LogHead } from '../receipt/seal/log-head.ts';
import type { Jwks } from '../receipt/seal/public-keys.ts';
import { requestOut } from '../transport/outbound/public-fetch.ts';
import { judge } from './judge.ts';
import { appendHead, readHeads } from './record.ts';

export type WitnessTarget =
  | { readonly name: string; readonly file: string }
  | { readonly name: string; readonly url: string; readonly token?: string };

export interface SendDeps {
  readonly store: Pick<Store, 'logTree'>;
  readonly keys: () => Jwks;
}

export const WITNESS_PATH = '/witness';
const ATTEMPT_MS = 5_000;
const LONGEST_ANSWER = 64 * 1024;

/**
 * For maintenance: sends each signed head to each witness. A witness that is unreachable gets the next head, which
 * covers the ones it missed.
 */
export function createHeadSender(deps: SendDeps & { witnesses: readonly WitnessTarget[]; logger: Logger }): HeadSender {
  const { witnesses, logger } = deps;
  const states = new Map<string, WitnessState>();
  return {
    async send({ events: head }) {
      if (!head) return;
      for (const witness of witnesses) {
        const { name } = witness;
        const kept = states.get(name)?.kept;
        try {
          await sendHead(witness, head, deps);
          states.set(name, { kept: { size: head.size, at: head.at }, trouble: undefined });
        } catch (cause) {
          logger.error({ err: cause, witness: name }, 'a witness does not keep the head of the log');
          states.set(name, { kept, trouble: 'it did not keep the last head; the log of this process says why' });
        }
      }
    },
    states: () => states,
  };
}

/** What became of the heads that this process sent to a witness. */
export interface WitnessState {
  readonly kept: { readonly size: number; readonly at: string } | undefined;
  readonly trouble: string | undefined;
}

export interface HeadSender {
  send(heads: { readonly events?: LogHead }): Promise<void>;
  /** By the witness's name; none before the first head was sent. */
  states(): ReadonlyMap<string, WitnessState>;
}

/** Rejects with the witness's message when it does not accept the head. */
export async function sendHead(target: WitnessTarget, head: LogHead, deps: SendDeps): Promise<void> {
  if ('file' in target) await intoFile(target.file, head, deps);
  else await toGateway(target, head, deps);
}

async function intoFile(path: string, head: LogHead, { store, keys }: SendDeps): Promise<void> {
  const last = (await readHeads(path)).at(-1);
  const proof = await proofFrom(store, last, head);
  const judged = judge(last, head, keys(), proof);
  if (!judged.fits) throw new Error(judged.message);
  if (!judged.known) await appendHead(path, head);
}

async function toGateway(
  { url, token }: Extract<WitnessTarget, { url: string }>,
  head: LogHead,
  { store, keys }: SendDeps,
): Promise<void> {
  const post = (proof?: ConsistencyProof) => ask(url, token, { head, keys: keys(), ...(proof && { proof }) });
  let answer = await post();
  if (answer.code === 'proof_required' && typeof answer.size === 'number') {
    const wanted = answer.size;
    if (wanted < head.size) answer = await post(await consistencyProof(wanted, head.size, store.logTree.nodes));
  }
  if (!answer.kept) throw new Error(answer.message ?? `the witness answered ${answer.status}`);
}

/** Undefined where our log is no longer than the witness's: then comparing the heads shows what is wrong. */
async function proofFrom(
  store: SendDeps['store'],
  last: LogHead | undefined,
  head: LogHead,
): Promise<ConsistencyProof | undefined> {
  if (!last || last.size >= head.size) return undefined;
  return await consistencyProof(last.size, head.size, store.logTree.nodes);
}

interface Answer {
  readonly status: number;
  readonly kept?: boolean;
  readonly code?: string;
  readonly message?: string;
  readonly size?: number;
}

/** The operator configured the address, so it may be on this machine or network; redirects are not followed. */
async function ask(url: string, token: string | undefined, body: object): Promise<Answer> {
  const { host } = new URL(url);
  const { status, text } = await requestOut(
    url,
    { allow: [host, new URL(url).hostname], insecure: false },
    {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) },
      body: JSON.stringify(body),
      timeoutMs: ATTEMPT_MS,
      limit: LONGEST_ANSWER,
    },
  );
  try {
    return { ...(JSON.parse(text) as object), status };
  } catch {
    return { status };
  }
}
