/** Literals for the tests of the model, and the faults that a call or a promise ends with. */
import { Fault } from '../../../src/model/faults.ts';

export const TIME = '2026-02-03T04:05:06.789Z';
export const HASH = 'f2ca1bb6c7e907d06dafe4687e579fce76b37e4e93b7605022da52e6ccc26fd2';

export function faultOf(act: () => unknown): Fault {
  try {
    act();
  } catch (thrown) {
    if (thrown instanceof Fault) return thrown;
    throw thrown;
  }
  throw new Error('nothing was thrown');
}

/** What a refused promise says is wrong; fails when it is kept. */
export async function refusalOf(work: Promise<unknown>): Promise<{ kind: string; param: string | undefined }> {
  try {
    await work;
  } catch (thrown) {
    const { kind, param } = thrown as { kind: string; param: string | undefined };
    return { kind, param };
  }
  throw new Error('it went through');
}
