/** Definitions of `log`, `task` and `replay`. */
import type { Command } from 'commander';
import { folded } from '../../output/help-text.ts';
import { named, run } from '../../run-command.ts';

export function addRecord(program: Command): void {
  program.commandsGroup('Look back:');
  program
    .command('log')
    .description('what happened, oldest first')
    .option('-f, --follow', 'stay, and show what happens as it happens')
    .option('-n, --last <count>', 'only the last so many events')
    .option('--task <id>', 'only what belongs to this task; its last characters are enough')
    .option('--json', 'every event as it is in the log, one JSON object per line')
    .addHelpText(
      'after',
      folded(`Each line: when, the number of the event, the task, what happened. Only what matters to people is shown; --json has
everything. Also shows what a running gateway writes, and what others write to the same log.`),
    )
    .action(run(async (options) => (await import('./log.ts')).showLog(options)));
  program
    .command('task')
    .description('one task from beginning to end: what was wanted, decided, asked, answered and proven')
    .argument('<id>', 'the task, or its last characters')
    .option('--json', 'one JSON object: the task, its events, questions, receipt and what checking that gave')
    .addHelpText(
      'after',
      folded(
        'A task is one piece of work somebody gave to an agent. "tollbridge log" shows their ids in its third column.',
      ),
    )
    .action(named(async (id, options) => (await import('./task.ts')).showTask(id, options)));
  program
    .command('replay')
    .description('live through a task again from its record; nothing really runs')
    .argument('<task>', 'a task that has ended, or its last characters')
    .option(
      '--override <key=value...>',
      'replace one recorded answer, for example mcp:SERVER:CALL={"status":"ok"} or …=@FILE',
    )
    .option('--visibility <word>', 'public, internal or receipt_only (as it is otherwise): who may see those values')
    .option('--from <checkpoint>', 'restore everything up to this event or checkpoint, and replay the rest')
    .option('--keys', 'only show which answers can be replaced')
    .option('--reason <text>', 'why; goes on record')
    .option('--json', 'one JSON object')
    .addHelpText(
      'after',
      folded(`Agent, tools, rules and people answer from the record; no tool is called and nobody is asked. The replay is a task of its
own with a receipt of its own, which names every answer that was replaced (its deltas). Without overrides it must come out
as it did then: exit 1 says that it did not. With overrides the agent is run again from the record where it can be; where it
cannot, the replay stops at the first thing the agent said after the replaced answer, and exits with 1. Values that are not
public stand in no event and are not shown here: their hashes are.`),
    )
    .action(named(async (id, options) => (await import('./replay.ts')).replayTask(id, options)));
}
