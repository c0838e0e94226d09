/**
 * `npm run test:fast`: unit, contract and stories, with logs in memory. Needs no build and no database; tests of the log's file, of a
 * database server, and one that needs a process of its own, are left to `npm test`.
 */
import { defineConfig } from 'vitest/config';
import all from './vitest.config.ts';

const { projects: _, env, ...shared } = all.test ?? {};

export default defineConfig({
  test: {
    ...shared,
    env: { ...env, TOLLBRIDGE_TEST_STORE: 'memory' },
    include: ['test/{unit,contract,stories}/**/*.test.ts'],
    exclude: [
      'test/unit/store/**',
      'test/contract/store-{sqlite,postgres}.test.ts',
      'test/stories/stories-postgres.test.ts',
      'test/unit/policy/first-load.test.ts',
    ],
    isolate: false,
  },
});
