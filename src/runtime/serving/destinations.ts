/** Where a gateway sends what happens in it, each with its key: approval webhooks, witnesses, and the other replicas. */
import type { Recipient } from '../../inbox/webhook.ts';
import type { Deps } from '../../ports/index.ts';
import type { WitnessTarget } from '../../witness/send.ts';
import type { CoreRuntime } from '../assemble.ts';
import type { Config } from '../config/config.ts';

/** Recipients of approval webhooks, each with its key; a missing key stops the start, not the question. */
export async function recipientsOf(
  { webhooks }: Config,
  secret: Deps['secret'],
  linkTo: ((name: string, askId: string) => string) | undefined,
) {
  return await Promise.all(
    Object.entries(webhooks).map(async ([name, { url, secret: key, links }]): Promise<Recipient> => {
      const link = links && linkTo ? (askId: string) => linkTo(name, askId) : undefined;
      return { name, url, key: await secret(key), link };
    }),
  );
}

/**
 * Witnesses that keep heads of the log; a missing key stops the start. A file is relative to the process's working
 * directory.
 */
export async function witnessesOf({ witness }: Config, secret: Deps['secret']): Promise<readonly WitnessTarget[]> {
  return await Promise.all(
    Object.entries(witness).map(async ([name, where]): Promise<WitnessTarget> => {
      if ('file' in where) return { name, file: where.file };
      return { name, url: where.url, ...(where.secret && { token: await secret(where.secret) }) };
    }),
  );
}

/** Processes that share their keys need nothing more; others are given a secret. */
export async function linkSecret(
  { replicas }: Config,
  secret: Deps['secret'],
  { signer }: CoreRuntime['keyring'],
): Promise<string> {
  return replicas.secret === undefined ? signer().mac('internal link') : await secret(replicas.secret);
}
