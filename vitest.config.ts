import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Own processes: some tests start children, watch signals or hold file locks.
    pool: 'forks',
    // What a passing test prints is nobody's business.
    silent: 'passed-only',
  },
});
