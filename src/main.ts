#!/usr/bin/env node
/** The command line. Each command is loaded when it is called, so that `--help` costs nothing. */
import { Command, CommanderError } from 'commander';
import { finish, run } from './cli/acting.ts';
import { EXIT } from './cli/exit-codes.ts';
import { addA2a } from './cli/tree/a2a.ts';
import { addAcp } from './cli/tree/acp.ts';
import { addAnswers } from './cli/tree/answers.ts';
import { addKeys } from './cli/tree/keys.ts';
import { addMcp } from './cli/tree/mcp.ts';
import { addProof } from './cli/tree/proof.ts';
import { addRecord } from './cli/tree/record.ts';
import { addRules } from './cli/tree/rules.ts';
import { addUpkeep } from './cli/tree/upkeep.ts';
import { VERSION } from './version.ts';

const program = new Command('tollbridge')
  .description('One bridge for every agent protocol: one policy, one approval inbox, one log, one proof.')
  .version(VERSION)
  .option('--config <file>', 'configuration (default: tollbridge.yaml here, if there is one)')
  .option('--data <dir>', 'where log and keys are kept (default: ~/.tollbridge)')
  .showHelpAfterError('  (--help says what there is)')
  .exitOverride()
  .addHelpText(
    'after',
    `
New here? "tollbridge demo" shows everything in ten seconds: no keys, no network, nothing to set up.
Every command explains itself with --help. How commands end is in docs/commands.md.`,
  );

program.commandsGroup('Begin:');
program
  .command('demo')
  .description('watch an agent ask before it acts, answer it, and check the proof; everything is built in')
  .option('--yes', 'say yes to the question, for scripts')
  .option('--no', 'say no to it')
  .option('--wait', 'do not ask here; wait until somebody answers elsewhere')
  .option('--port <number>', 'also listen here, so that the question can be answered over HTTP')
  .option('--json', 'events as they are in the log, one JSON object per line, then one that sums up')
  .addHelpText(
    'after',
    `
A small agent reads a note, which a rule allows, and then wants to send a mail, which a rule leaves to a person: you.
Answer y or n here, or from another terminal with "tollbridge approve". Then a signed receipt is written, and you are
invited to break it. Everything is in a directory of its own, which --data can name.`,
  )
  .action(run(async (options) => (await import('./cli/demo.ts')).demo(options)));

program
  .command('serve')
  .description('open every door on one port, with the built-in demo agent behind them')
  .option('--host <address>', 'address to listen on (default: 127.0.0.1)')
  .option('--port <number>', 'port to listen on (default: 4319)')
  .option('--journal <file>', 'write one line for every effect the demo tools have')
  .addHelpText(
    'after',
    `
Prints where it listens, with a token for this machine, where the log is, and how to answer questions. Agents, tools and
rules come from tollbridge.yaml. Ctrl-C lets running work end; questions that wait keep waiting for the next start.`,
  )
  .action(run(async (options) => (await import('./cli/serve.ts')).serve(options)));

program
  .command('init')
  .description('put the agents of an editor, or the tools of an agent, behind tollbridge')
  .argument('<where>', 'zed, jetbrains, vscode, neovim, claude-desktop, claude-code or cursor')
  .argument('[command...]', 'after --: one more to add, by the command that starts it')
  .option('--write', 'write the settings; without it they are only shown')
  .option('--undo', 'take tollbridge out again')
  .option('--settings <file>', 'settings elsewhere than usual')
  .option('--name <name>', 'what a new entry is called')
  .option('--json', 'one JSON object')
  .addHelpText(
    'after',
    `
Shows what would change, line by line, and how to undo it. Only the commands are changed, so that what the editor starts is
started by tollbridge instead; comments and everything else in the settings stay as they are.

  tollbridge init zed                 what would change for the agents Zed knows
  tollbridge init zed --write         change it
  tollbridge init zed -- npx my-agent add an agent, behind tollbridge from the start`,
  )
  .action((where: string, words: string[], _: object, command: Command) =>
    finish(async () => (await import('./cli/init.ts')).init(where, words, command.optsWithGlobals())),
  );

program.commandsGroup('Stand between an agent and the world:');
program
  .command('ahp')
  .description('decide for agents that speak AHP: over standard input and output, or at a Unix socket')
  .option('--stdio', 'one agent, which started this process')
  .option('--socket <path>', 'agents that may open this socket')
  .addHelpText(
    'after',
    `
AHP is a protocol by which an agent asks before each act and reports after it. Point the agent at this command; rules,
questions, log and receipts are the same as everywhere else. See docs/ahp.md.`,
  )
  .action(run(async (options) => (await import('./cli/ahp.ts')).ahp(options)));

addAcp(program);
addA2a(program);
addMcp(program);
addAnswers(program);
addRecord(program);
addProof(program);
addRules(program);
addKeys(program);
addUpkeep(program);

// Whoever reads us may stop reading: "tollbridge log | head" is no mistake.
process.stdout.on('error', (cause: NodeJS.ErrnoException) => {
  process.exit(cause.code === 'EPIPE' ? EXIT.done : EXIT.unusable);
});

if (process.argv.length <= 2) program.outputHelp();
else {
  try {
    await program.parseAsync();
  } catch (thrown) {
    if (!(thrown instanceof CommanderError)) throw thrown;
    process.exitCode = thrown.exitCode === 0 ? EXIT.done : EXIT.misunderstood;
  }
}
