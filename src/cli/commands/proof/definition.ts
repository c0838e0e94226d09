/** Definitions of `verify`, `export` and `witness`. */
import type { Command } from 'commander';
import { folded } from '../../output/help-text.ts';
import { named } from '../../run-command.ts';

export function addProof(program: Command): void {
  program.commandsGroup('Receipts and proof:');
  program
    .command('verify')
    .description('verify receipts: unchanged, complete, and signed by a trusted key')
    .argument('<what>', 'a file, a directory written by export, the id of a task or receipt, or "all"')
    .option('--keys <file>', 'public keys (default: keys.json beside the receipts)')
    .option('--head <file>', 'signed tree head (default: tree-head.json beside the receipts)')
    .option('--trust <key id>', 'accept signatures of this key only')
    .option('--linked <path>', 'the export of another gateway, to verify links between both')
    .option('--linked-keys <file>', 'its public keys (default: keys.json beside its receipts)')
    .option(
      '--witness <file or address...>',
      'signed log heads stored elsewhere, to detect a rolled back or replaced log',
    )
    .option('--json', 'one JSON object')
    .addHelpText(
      'after',
      folded(`Files (.jsonl, .json, .cbor) are verified offline with the public keys. An id, or "all", is looked up in the log under --data.
Each receipt's hash is recomputed, its link to the previous receipt is checked, and its signature is verified. With "all", and with an
export, every event is also checked against the signed log heads and the receipt of its task. Each invalid record is printed with
the reason (exit 1). See docs/verify.md and docs/proof.md.`),
    )
    .action(named(async (what, options) => (await import('./verify.ts')).verify(what, options)));
  program
    .command('export')
    .description('write receipts, public keys, a signed tree head and events to a directory')
    .argument('<dir>', 'created if it does not exist')
    .option('--no-events', 'do not export events')
    .option('--cbor', 'also the receipts as one CBOR archive')
    .option('--task <id>', 'only events of this task; all receipts are always exported, so that a gap can be detected')
    .option('--json', 'one JSON object')
    .addHelpText(
      'after',
      folded(`receipts.jsonl, keys.json and tree-head.json are all that "tollbridge verify DIR" needs, on any machine. events.jsonl is the log, one
event per line, and log-head.json a signed head over it. receipts.cbor holds the same receipts in deterministic CBOR.`),
    )
    .action(named(async (dir, options) => (await import('./export.ts')).exportAll(dir, options)));
  const witness = program
    .command('witness')
    .description('store signed log heads elsewhere, and check the log against them')
    .addHelpText(
      'after',
      folded(`A witness is a file on another machine, or another gateway's /witness/heads. A gateway sends its heads automatically to those under
"witness" in the configuration. A key for an address is read from TOLLBRIDGE_WITNESS_TOKEN. See docs/proof.md.`),
    );
  witness
    .command('run')
    .description('sign a head of the current log and send it to a witness')
    .argument('<to>', 'a file, or an address')
    .option('--json', 'the head as JSON')
    .addHelpText(
      'after',
      folded(
        `The head is appended to a file. A witness that has heads of a longer log, or of another log, refuses it (exit 1).`,
      ),
    )
    .action(named(async (to, options) => (await import('./witness.ts')).witnessRun(to, options)));
  witness
    .command('list')
    .description('list the heads a witness has, oldest first')
    .argument('<from>', 'a file, or an address')
    .option('--json', 'one JSON object per line')
    .addHelpText('after', folded(`Columns: time of signing, number of events, last event, root hash.`))
    .action(named(async (from, options) => (await import('./witness.ts')).witnessList(from, options)));
  witness
    .command('check')
    .description('check the log against a witness: the same as verify all --witness')
    .argument('<from>', 'a file, or an address')
    .option('--json', 'one JSON object')
    .addHelpText(
      'after',
      folded(`A log that was restored from an earlier copy, or continued differently from one, does not match a stored head. That head is
printed (exit 1).`),
    )
    .action(named(async (from, options) => (await import('./witness.ts')).witnessCheck(from, options)));
}
