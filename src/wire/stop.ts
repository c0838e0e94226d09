/**
 * A stop that is listened to as an `AbortSignal` is, for what is made with every call and hardly ever fires: making a real
 * one and taking a listener on and off again costs more than sending a small request. Where a platform wants a signal of
 * its own kind this is none.
 */
export interface StopSignal {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: 'abort', heard: () => void, options?: { readonly once?: boolean }): void;
  removeEventListener(type: 'abort', heard: () => void): void;
}

export class Stop implements StopSignal {
  aborted = false;
  reason: unknown = undefined;
  readonly #heard: (() => void)[] = [];

  /** Fires once; every listener is told once, in the order they came. */
  abort(reason: unknown = new Error('given up')): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    for (const heard of this.#heard.splice(0)) heard();
  }

  addEventListener(_: 'abort', heard: () => void): void {
    if (!this.aborted) this.#heard.push(heard);
  }

  removeEventListener(_: 'abort', heard: () => void): void {
    const at = this.#heard.indexOf(heard);
    if (at >= 0) this.#heard.splice(at, 1);
  }
}
