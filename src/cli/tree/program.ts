/** Every command there is, by name, with its options and what it says of itself. Nothing of what they do is loaded here. */
import { Command } from 'commander';
import { VERSION } from '../../version.ts';
import { addA2a } from './a2a.ts';
import { addAcp } from './acp.ts';
import { addAhp } from './ahp.ts';
import { addAnswers } from './answers.ts';
import { addBegin } from './begin.ts';
import { folded, helpWidth } from './fold.ts';
import { addKeys } from './keys.ts';
import { addMcp } from './mcp.ts';
import { addProof } from './proof.ts';
import { addRecord } from './record.ts';
import { addRules } from './rules.ts';
import { addUpkeep } from './upkeep.ts';

export function createProgram(): Command {
  const program = new Command('tollbridge')
    .description('One bridge for every agent protocol: one policy, one approval inbox, one log, one proof.')
    .version(VERSION, '-V, --version', 'say which version this is')
    .helpOption('-h, --help', 'explain it')
    .option('--config <file>', 'configuration (default: your own, which "tollbridge init" makes)')
    .option('--data <dir>', 'where log and keys are kept (default: ~/.tollbridge)')
    .exitOverride()
    // What went wrong is told by whoever catches it, in the words of every other complaint.
    .configureOutput({ outputError: () => {}, getOutHelpWidth: () => helpWidth(), getErrHelpWidth: () => helpWidth() })
    .configureHelp({ showGlobalOptions: true })
    .addHelpText(
      'after',
      folded(`New here? "tollbridge demo" shows everything in ten seconds: no keys, no network, nothing to set up.

Every command explains itself with --help. --config and --data can also be said as TOLLBRIDGE_CONFIG and TOLLBRIDGE_DATA.

Commands end with 0: done, 1: the answer is no, 2: not understood, 3: not there, 4: too late, 5: not allowed, 6: a directory or
port that cannot be used, 7: a program that cannot be started or reached. More is in docs/commands.md.`),
    );
  addBegin(program);
  program.commandsGroup('Stand between an agent and the world:');
  for (const add of [addAcp, addMcp, addA2a, addAhp]) add(program);
  for (const add of [addAnswers, addRecord, addProof, addRules, addKeys, addUpkeep]) add(program);
  return program.addHelpCommand(
    new Command('help').argument('[command]').description('explain a command').helpGroup('Help:'),
  );
}
