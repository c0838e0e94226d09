/** Definitions of `policy show`, `check`, `test`, `diff`, and of `trust`. */
import type { Command } from 'commander';
import { folded } from '../../output/help-text.ts';
import { finish, named, run } from '../../run-command.ts';

export function addRules(program: Command): void {
  program.commandsGroup('Rules:');
  const policy = program.command('policy').description('show, check, test and compare rules');
  policy
    .command('show')
    .description('print the rules as Cedar, as they are evaluated')
    .option('--json', 'one JSON object: number of rules, version, text')
    .addHelpText(
      'after',
      folded(`Rules decide what agents may do: allow, block, ask a person, modify the arguments, or defer. They are written in
tollbridge.yaml, in the short form or as Cedar files. Without rules, reading is allowed and acts that send data out ask a person. See docs/rules.md.`),
    )
    .action(run(async (options) => (await import('./policy.ts')).policyShow(options)));
  policy
    .command('check')
    .description('check the rules for mistakes')
    .option('--json', 'one JSON object, with every problem and its line and column')
    .addHelpText('after', folded('Every mistake is printed with file, rule, line, column and a correction (exit 2).'))
    .action(run(async (options) => (await import('./policy.ts')).policyCheck(options)));
  policy
    .command('test')
    .description('test the rules with cases: an act and the expected decision')
    .argument('<file>', 'a YAML file of cases')
    .option('--rules <file>', 'test these rules instead of the configured ones')
    .option('--json', 'one JSON object per case')
    .addHelpText(
      'after',
      folded(`A file of cases:

  - name: reading is fine
    action: { tool: read_note, effect: read }
    expect: allow
  - name: mail asks
    action: { tool: send_mail, effect: send, arguments: { to: ana } }
    expect: ask
    rule: outside-needs-a-human

"expect" is allow, block, ask, modify or defer. Optional: "rule", the rule that has to decide, and "arguments", the
expected result of "modify". Exit 1: a case failed.`),
    )
    .action(named(async (file, options) => (await import('./policy-test.ts')).policyTest(file, options)));
  policy
    .command('diff')
    .description('apply other rules to every recorded act, and list decisions that would change')
    .argument('<rules>', 'rules (.yaml or .cedar), or a whole tollbridge.yaml')
    .option('--task <id>', 'only acts of this task')
    .option('--json', 'one JSON object per change, then a summary')
    .addHelpText(
      'after',
      folded(`Nothing runs and nothing is written. Where a rule needs a value that was redacted in the log, the result is "unknown". Exit 1: a
decision would change.`),
    )
    .action(named(async (file, options) => (await import('./policy-diff.ts')).policyDiff(file, options)));
  program
    .command('trust')
    .description('enable the restricting rules of tollbridge.yaml in this directory, after showing them')
    .argument('[dir]', 'the directory (default: the current one)')
    .option('--list', 'list trusted files, and which have changed since')
    .option('--remove', 'stop trusting it')
    .option('--yes', 'do not ask for confirmation')
    .option('--json', 'one JSON object; with --list, one per line')
    .addHelpText(
      'after',
      folded(`A tollbridge.yaml in a working directory may come from a cloned repository, so it is ignored until you trust it. This command shows
the file and every file it refers to, and records their hashes. Its rules may only block, ask or defer; a file with anything else is
refused (exit 5). When the file changes, the version you trusted stays in force until you trust the new one.

Agents, tools, listeners, secrets and allowing rules belong in your own file, which "tollbridge init"
creates, or in the file you pass with --config.`),
    )
    .action((dir: string | undefined, _: object, self: Command) =>
      finish(async () => (await import('./trust.ts')).trust(dir, self.optsWithGlobals())),
    );
}
