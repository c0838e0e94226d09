/**
 * A lightweight stop with the listeners of an `AbortSignal`, for calls that each need one and hardly ever fire it:
 * making a real one and adding and removing a listener costs more than sending a small request. Platform APIs that
 * require a real `AbortSignal` do not accept it.
 */
export interface StopSignal {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: 'abort', listener: () => void, options?: { readonly once?: boolean }): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

export class Stop implements StopSignal {
  aborted = false;
  reason: unknown = undefined;
  readonly #listeners: (() => void)[] = [];

  /** Fires once; every listener is called once, in the order they were added. */
  abort(reason: unknown = new Error('given up')): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    for (const listener of this.#listeners.splice(0)) listener();
  }

  addEventListener(_: 'abort', listener: () => void): void {
    if (!this.aborted) this.#listeners.push(listener);
  }

  removeEventListener(_: 'abort', listener: () => void): void {
    const at = this.#listeners.indexOf(listener);
    if (at >= 0) this.#listeners.splice(at, 1);
  }
}
