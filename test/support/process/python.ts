/** Python with the two packages the scripts in examples/verify need, if it is here. */
import { spawnSync } from 'node:child_process';

export const PYTHON = process.env.TOLLBRIDGE_PYTHON ?? 'python3';
export const hasPython = spawnSync(PYTHON, ['-c', 'import cryptography, rfc8785']).status === 0;

// An interpreter that is named is used: without its packages the tests fail instead of being skipped.
if (process.env.TOLLBRIDGE_PYTHON && !hasPython) {
  throw new Error(`${PYTHON} has not both of the packages cryptography and rfc8785`);
}
