/** The same handler with every failure said in other words, for the parts of the SDK that want their own. */
import type { A2ARequestHandler } from '@a2a-js/sdk/server';

const STREAMS: readonly string[] = ['sendMessageStream', 'resubscribe'] satisfies (keyof A2ARequestHandler)[];

export function speaking(handler: A2ARequestHandler, words: (thrown: unknown) => Error): A2ARequestHandler {
  return new Proxy(handler, {
    get(target, name: string) {
      const own = target[name as keyof A2ARequestHandler] as (...given: unknown[]) => unknown;
      if (!STREAMS.includes(name)) {
        return async (...given: unknown[]) => {
          try {
            return await own.apply(target, given);
          } catch (thrown) {
            throw words(thrown);
          }
        };
      }
      return async function* (...given: unknown[]) {
        try {
          yield* own.apply(target, given) as AsyncGenerator;
        } catch (thrown) {
          throw words(thrown);
        }
      };
    },
  });
}
