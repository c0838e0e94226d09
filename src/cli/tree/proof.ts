/** The commands about proof: verify, export. */
import type { Command } from 'commander';
import { named } from '../acting.ts';
import { folded } from './fold.ts';

export function addProof(program: Command): void {
  program.commandsGroup('Prove:');
  program
    .command('verify')
    .description('check receipts: nothing changed, nothing missing, signed by a key you may trust')
    .argument('<what>', 'a file, a directory written by export, the id of a task or receipt, or "all"')
    .option('--keys <file>', 'public keys (default: keys.json beside the receipts)')
    .option('--head <file>', 'signed tree head (default: tree-head.json beside the receipts)')
    .option('--trust <key id>', 'count no other key')
    .option('--json', 'one JSON object')
    .addHelpText(
      'after',
      folded(`Files (.jsonl, .json, .cbor) are checked with nothing but themselves and public keys. An id, or "all", is looked up in the
log under --data. Each receipt is hashed anew, held against the one before it, and its signature is checked. What is
broken is named, with what is wrong with it (exit 1). See docs/verify.md.`),
    )
    .action(named(async (what, options) => (await import('../verify.ts')).verify(what, options)));
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
event per line. receipts.cbor holds the same receipts, one after the other, in deterministic CBOR.`),
    )
    .action(named(async (dir, options) => (await import('../export.ts')).exportAll(dir, options)));
}
