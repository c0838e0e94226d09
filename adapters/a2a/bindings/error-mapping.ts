/** Wraps the handler for those parts of the SDK that call it: translates every error, and slows streams to their reader's pace. */
import type { A2ARequestHandler, ServerCallContext } from '@a2a-js/sdk/server';

const STREAMS: readonly string[] = ['sendMessageStream', 'resubscribe'] satisfies (keyof A2ARequestHandler)[];

export interface ErrorWords {
  words(thrown: unknown, context: ServerCallContext | undefined): Error;
  /** Resolves when there is room for more; false: the reader is gone. */
  room?(context: ServerCallContext): Promise<boolean>;
}

export function mapErrors(handler: A2ARequestHandler, { words, room }: ErrorWords): A2ARequestHandler {
  return new Proxy(handler, {
    get(target, name: string) {
      const own = target[name as keyof A2ARequestHandler] as (...args: unknown[]) => unknown;
      if (!STREAMS.includes(name)) {
        return async (...args: unknown[]) => {
          try {
            return await own.apply(target, args);
          } catch (thrown) {
            throw words(thrown, args[1] as ServerCallContext | undefined);
          }
        };
      }
      return async function* (params: unknown, context: ServerCallContext) {
        try {
          for await (const said of own.call(target, params, context) as AsyncGenerator) {
            yield said;
            if (room && !(await room(context))) return;
          }
        } catch (thrown) {
          throw words(thrown, context);
        }
      };
    },
  });
}
