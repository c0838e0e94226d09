/**
 * Combines several signals into one. A signal made by `AbortSignal.any` does not keep its sources alive, so that a timeout signal
 * without another reference is garbage-collected and never fires (Node 20 and 22): the code waiting for it waits for ever. Here the
 * sources are kept.
 */
const sources = new WeakMap<AbortSignal, readonly AbortSignal[]>();

/** Fires with the first of the signals. */
export function anySignal(signals: readonly AbortSignal[]): AbortSignal {
  const any = AbortSignal.any([...signals]);
  sources.set(any, signals);
  return any;
}
