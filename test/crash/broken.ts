/** A promise that was not kept: which one, and what shows it. */
export class Broken extends Error {
  readonly promise: string;
  constructor(promise: string, detail: string, evidence?: unknown) {
    super(`${promise}: ${detail}${evidence === undefined ? '' : `\n${JSON.stringify(evidence, null, 2)}`}`);
    this.name = 'Broken';
    this.promise = promise;
  }
}
