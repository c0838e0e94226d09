/** The command tree: names, options and help of every command. The code behind them is not loaded here. */
import { Command } from 'commander';
import { VERSION } from '../../model/version.ts';
import { folded, helpWidth } from '../output/help-text.ts';
import { addA2a } from './a2a/definition.ts';
import { addAcp } from './acp/definition.ts';
import { addAgents } from './agents/definition.ts';
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
import { addStore } from './store/definition.ts';

export function createProgram(): Command {
  const program = new Command('tollbridge')
    .description(
      'A gateway between agent protocols: one policy, one approval inbox, one log, one chain of signed receipts.',
    )
    .version(VERSION, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'show this help')
    .option('--config <file>', 'configuration file (default: your own, which "tollbridge init" creates)')
    .option('--data <dir>', 'directory of the log and keys (default: ~/.tollbridge)')
    .exitOverride()
    // The code that catches the error prints it, in the format of all other errors.
    .configureOutput({ outputError: () => {}, getOutHelpWidth: () => helpWidth(), getErrHelpWidth: () => helpWidth() })
    .configureHelp({ showGlobalOptions: true })
    .addHelpText(
      'after',
      folded(`New here? "tollbridge demo" shows the whole flow in ten seconds, without keys, network or configuration.

Every command has --help. The environment variables TOLLBRIDGE_CONFIG and TOLLBRIDGE_DATA replace --config and --data.

Exit codes: 0 success, 1 negative result, 2 usage or configuration error, 3 not found, 4 conflict (for example already answered),
5 not allowed, 6 directory or port not usable, 7 program not startable or not reachable. Details: docs/commands.md.`),
    );
  addBegin(program);
  program.commandsGroup('Connect agents, editors and tools:');
  for (const add of [addAcp, addMcp, addA2a, addAhp]) add(program);
  for (const add of [addAnswers, addConsole, addRecord, addProof, addRules, addAgents, addKeys, addStore, addUpkeep])
    add(program);
  return program.addHelpCommand(
    new Command('help').argument('[command]').description('show help for a command').helpGroup('Help:'),
  );
}
