/** The command tree: names, options and help of every command. The code behind them is not loaded here. */
import { Command } from 'commander';
import { VERSION } from '../../model/version.ts';
import { folded, helpWidth } from '../output/help-text.ts';
import { addA2a } from './a2a/definition.ts';
import { addAcp } from './acp/definition.ts';
import { addAhp } from './ahp/definition.ts';
import { addAnswers } from './approvals/definition.ts';
import { addConsole } from './console/definition.ts';
import { addRecord } from './history/definition.ts';
import { addKeys } from './keys/definition.ts';
import { addUpkeep } from './maintenance/definition.ts';
import { addMcp } from './mcp/definition.ts';
import { addProof } from './proof/definition.ts';
import { addRules } from './rules/definition.ts';
import { addBegin } from './start/definition.ts';

export function createProgram(): Command {
  const program = new Command('tollbridge')
    .description('One bridge for every agent protocol: one policy, one approval inbox, one log, one proof.')
    .version(VERSION, '-V, --version', 'say which version this is')
    .helpOption('-h, --help', 'explain it')
    .option('--config <file>', 'configuration (default: your own, which "tollbridge init" makes)')
    .option('--data <dir>', 'where log and keys are kept (default: ~/.tollbridge)')
    .exitOverride()
    // The code that catches the error prints it, in the format of all other errors.
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
  for (const add of [addAnswers, addConsole, addRecord, addProof, addRules, addKeys, addUpkeep]) add(program);
  return program.addHelpCommand(
    new Command('help').argument('[command]').description('explain a command').helpGroup('Help:'),
  );
}
