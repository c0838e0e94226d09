import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Own processes: some tests start children, watch signals or hold file locks.
    pool: 'forks',
    // The configuration of the person who runs the tests is not theirs to find: nothing is ever written here.
    env: { XDG_CONFIG_HOME: join(tmpdir(), 'tollbridge-tests-have-no-configuration') },
    // Most of the time is spent waiting for a disk or a child, not for a processor.
    maxWorkers: availableParallelism() + 1,
    // What a passing test prints is nobody's business.
    silent: 'passed-only',
  },
});
