import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * These get a process each: floods, full disks and shrunken limits measure memory and event loop; a first load is the first in its process.
 */
const ALONE = [
  'test/hostile/**/*.test.ts',
  'test/process/examples-verify.test.ts',
  'test/unit/policy/first-load.test.ts',
];

/** Loading the gateway takes longer than most of their tests, so they share a few processes; each has a browser of its own. */
const BROWSER = 'test/browser/**/*.test.ts';

/** The longest first, whatever their size says: begun last, they would keep one processor busy and the others waiting. */
const LONGEST = [
  'process/live-matrix',
  'process/soak',
  'hostile/reload',
  'hostile/faults',
  'hostile/display',
  'hostile/config-trust',
  'process/docs-uses',
  'crash/crash',
  'crash/crash-callers',
  'protocols/acp-acts',
  'hostile/edges',
  'protocols/ahp',
  'hostile/config',
  'hostile/rules',
  'hostile/limits',
  'hostile/attempts',
  'fleet/postgres',
  'fleet/restart',
  'fleet/faults',
  'fleet/once',
  'cli/workers',
  'stories/stories',
  'visibility-doors',
  'relay/process',
  'a2a/many-peers',
];
/** A process that several files share ends as soon as the next file is of another project, so the projects come one after the other. */
const PROJECTS = ['alone', 'browser', 'shared'];
const rankOf = ({ moduleId, project }: TestSpecification) => {
  const rank = LONGEST.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`));
  return PROJECTS.indexOf(project.name) * (LONGEST.length + 1) + (rank < 0 ? LONGEST.length : rank);
};

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((one, other) => rankOf(one) - rankOf(other));
  }
}

export default defineConfig({
  test: {
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // On a shared machine a process can stand still for seconds, and a test that waits for it fails. Locally there is no second try.
    retry: process.env.CI ? 1 : 0,
    // Own processes: some tests start children, watch signals or hold file locks.
    pool: 'forks',
    // The configuration of the person who runs the tests is not theirs to find: nothing is ever written here.
    env: { XDG_CONFIG_HOME: join(tmpdir(), 'tollbridge-tests-have-no-configuration') },
    // Most of the time is spent waiting for a disk or a child, not for a processor.
    maxWorkers: availableParallelism() + 1,
    // Output of passing tests is not shown.
    silent: 'passed-only',
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        extends: true,
        test: { name: 'alone', include: ALONE },
      },
      {
        extends: true,
        test: {
          name: 'browser',
          // A page draws while a test acts on it, and not every test waits for the last row yet.
          retry: process.env.CI ? 3 : 0,
          include: [BROWSER],
          setupFiles: ['test/support/process/close-browser.ts'],
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          name: 'shared',
          include: ['test/**/*.test.ts'],
          exclude: [...ALONE, BROWSER],
          // A process runs one file after the other: loading the core and warming the policy evaluator took longer than most files.
          // So a file leaves nothing behind: what a test opens, sets or replaces is put back by `onTestFinished`.
          isolate: false,
        },
      },
    ],
  },
});
