/** Literals and faults for the tests of the model. */
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
