/** Definitions of `verify`, `export` and `witness`. */
import type { Command } from 'commander';
import { folded } from '../../output/help-text.ts';
import { named } from '../../run-command.ts';

export function addProof(program: Command): void {
  program.commandsGroup('Prove:');
  program
    .command('verify')
    .description('check receipts: nothing changed, nothing missing, signed by a key you may trust')
    .argument('<what>', 'a file, a directory written by export, the id of a task or receipt, or "all"')
    .option('--keys <file>', 'public keys (default: keys.json beside the receipts)')
    .option('--head <file>', 'signed tree head (default: tree-head.json beside the receipts)')
    .option('--trust <key id>', 'count no other key')
    .option('--linked <path>', 'the export of another gateway: follow the links between both')
    .option('--linked-keys <file>', 'its public keys (default: keys.json beside its receipts)')
    .option(
      '--witness <file or address...>',
      'signed heads kept elsewhere: a log that was rolled back or exchanged does not fit them',
    )
    .option('--json', 'one JSON object')
    .addHelpText(
      'after',
      folded(`Files (.jsonl, .json, .cbor) are checked with nothing but themselves and public keys. An id, or "all", is looked up in the
log under --data. Each receipt is hashed anew, held against the one before it, and its signature is checked. With "all", and with an
export, so is every event: against the signed heads of the log and the receipt of its task. What is broken is named, with what
is wrong with it (exit 1). See docs/verify.md and docs/proof.md.`),
    )
    .action(named(async (what, options) => (await import('./verify.ts')).verify(what, options)));
  program
    .command('export')
    .description('write receipts, the public keys, a signed end, and events to a directory')
    .argument('<dir>', 'made when it is not there')
    .option('--no-events', 'leave the events out')
    .option('--cbor', 'also the receipts as one CBOR archive')
    .option('--task <id>', 'only the events of this task; receipts are always all, or a gap could not be seen')
    .option('--json', 'one JSON object')
    .addHelpText(
      'after',
      folded(`receipts.jsonl, keys.json and tree-head.json are what "tollbridge verify DIR" needs, anywhere. events.jsonl is the log, one
event per line, and log-head.json a signed head over it. receipts.cbor holds the same receipts, one after the other, in deterministic CBOR.`),
    )
    .action(named(async (dir, options) => (await import('./export.ts')).exportAll(dir, options)));
  const witness = program
    .command('witness')
    .description('keep signed heads of the log elsewhere, and hold the log against them')
    .addHelpText(
      'after',
      folded(`A witness is a file somewhere else, or another gateway's /witness/heads. A gateway sends its heads by itself to those under
"witness" in the configuration. A key for an address is read from TOLLBRIDGE_WITNESS_TOKEN. See docs/proof.md.`),
    );
  witness
    .command('run')
    .description('sign a head over the log as it is now, and have it kept')
    .argument('<to>', 'a file, or an address')
    .option('--json', 'the head as JSON')
    .addHelpText(
      'after',
      folded(
        `A file is only ever added to. A witness that has heads of a longer log, or of another one, does not take it, and says so (exit 1).`,
      ),
    )
    .action(named(async (to, options) => (await import('./witness.ts')).witnessRun(to, options)));
  witness
    .command('list')
    .description('the heads a witness keeps, oldest first')
    .argument('<from>', 'a file, or an address')
    .option('--json', 'one JSON object per line')
    .addHelpText(
      'after',
      folded(`Each line is a head: when it was signed, how many events it counts, to which one, and their root.`),
    )
    .action(named(async (from, options) => (await import('./witness.ts')).witnessList(from, options)));
  witness
    .command('check')
    .description('hold the log against what a witness keeps: the same as verify all --witness')
    .argument('<from>', 'a file, or an address')
    .option('--json', 'one JSON object')
    .addHelpText(
      'after',
      folded(`A log that was put back to an earlier copy, or went on otherwise from one, does not fit a head that was kept. That head is named
(exit 1).`),
    )
    .action(named(async (from, options) => (await import('./witness.ts')).witnessCheck(from, options)));
}
