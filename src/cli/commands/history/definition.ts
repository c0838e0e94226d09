/** Definitions of `log`, `task` and `replay`. */
import type { Command } from 'commander';
import { folded } from '../../output/help-text.ts';
import { named, run } from '../../run-command.ts';

export function addRecord(program: Command): void {
  program.commandsGroup('History:');
  program
    .command('log')
    .description('print the newest events of the log')
    .option('-f, --follow', 'keep running, and print new events')
    .option('-n, --last <count>', 'the newest COUNT events instead of 50')
    .option('--before <number>', 'the page before this event')
    .option('--all', 'every event, oldest first')
    .option('--task <id>', 'only events of this task; the last characters of its id are enough')
    .option('--json', 'every event as stored, one JSON object per line')
    .addHelpText(
      'after',
      folded(`Columns: time, event number, task, description. Internal events are left out. --json prints every event of the log, or those that
-n or --before asks for. With -f, also prints what other processes write to the same log.`),
    )
    .action(run(async (options) => (await import('./log.ts')).showLog(options)));
  program
    .command('task')
    .description('print one task: its input, decisions, approvals, result and receipt')
    .argument('<id>', 'id of the task, or its last characters')
    .option('--json', 'one JSON object: the task, its events, approvals, receipt and verification result')
    .addHelpText(
      'after',
      folded(
        'A task is one piece of work that a client submitted to an agent. "tollbridge log" shows their ids in its third column.',
      ),
    )
    .action(named(async (id, options) => (await import('./task.ts')).showTask(id, options)));
  program
    .command('replay')
    .description('replay a task from the log; no agent or tool is contacted')
    .argument('<task>', 'id of a task that has ended, or its last characters')
    .option(
      '--override <key=value...>',
      'replace one recorded result, for example mcp:SERVER:CALL={"status":"ok"} or …=@FILE',
    )
    .option('--visibility <word>', 'who may see replaced values: public, internal or receipt_only (default)')
    .option('--from <checkpoint>', 'restore the state at this event or checkpoint, and replay the rest')
    .option('--keys', 'only list the keys that --override accepts')
    .option('--reason <text>', 'recorded in the log')
    .option('--json', 'one JSON object')
    .addHelpText(
      'after',
      folded(`Agent, tools, rules and people answer from the log; no tool is called and no person is asked. The replay is a new task with its
own receipt, which lists every replaced result (its deltas). Without overrides the replay must end like the original; exit 1 means
that it did not. With overrides the agent is simulated from the log as far as possible; the replay stops at the first agent output
that depends on a replaced result, and exits with 1. Values that are not public are not stored in events and not shown; their hashes are.`),
    )
    .action(named(async (id, options) => (await import('./replay.ts')).replayTask(id, options)));
}
