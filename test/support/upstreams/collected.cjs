/**
 * Loaded before the gateway with `--require` and `--expose-gc`: on SIGUSR2 it collects garbage and writes how many bytes are left. What a
 * process has from the system says little, since V8 gives it back when it likes.
 */
const { writeFileSync, renameSync } = require('node:fs');
const { isMainThread } = require('node:worker_threads');

if (isMainThread) {
  process.on('SIGUSR2', () => {
    global.gc();
    const { heapUsed, external } = process.memoryUsage();
    const file = process.env.COLLECTED_FILE;
    writeFileSync(`${file}.new`, String(heapUsed + external));
    renameSync(`${file}.new`, file);
  });
}
