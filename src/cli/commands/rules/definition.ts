/** Definitions of `policy show`, `check`, `test`, `diff`, and of `trust`. */
import type { Command } from 'commander';
import { folded } from '../../output/help-text.ts';
import { finish, named, run } from '../../run-command.ts';

export function addRules(program: Command): void {
  program.commandsGroup('Rules:');
  const policy = program.command('policy').description('the rules: see them, check them, try them, compare them');
  policy
    .command('show')
    .description('print the rules as Cedar, exactly as they are evaluated')
    .option('--json', 'one JSON object: how many, their version, the text')
    .addHelpText(
      'after',
      folded(`Rules decide what agents may do: allow, block, ask a person, change the arguments, or not now. They stand in
tollbridge.yaml, in short or as Cedar files; without any, reading is allowed and what leaves the house asks. See docs/rules.md.`),
    )
    .action(run(async (options) => (await import('./policy.ts')).policyShow(options)));
  policy
    .command('check')
    .description('say whether the rules can be loaded, and what is wrong with them')
    .option('--json', 'one JSON object, with every problem and its place')
    .addHelpText(
      'after',
      folded('Every mistake is named with its file, rule, line and column, and what to write instead (exit 2).'),
    )
    .action(run(async (options) => (await import('./policy.ts')).policyCheck(options)));
  policy
    .command('test')
    .description('hold the rules to written cases: this act, that answer')
    .argument('<file>', 'cases, in YAML')
    .option('--rules <file>', 'these rules instead of the ones in force')
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

"expect" is allow, block, ask, modify or defer. "rule" names the rule that has to decide, and "arguments" what "modify"
has to make of the arguments; both may be left out. Exit 1: a case came out otherwise.`),
    )
    .action(named(async (file, options) => (await import('./policy-test.ts')).policyTest(file, options)));
  policy
    .command('diff')
    .description('put everything that was ever decided to other rules, and list what would change')
    .argument('<rules>', 'rules (.yaml or .cedar), or a whole tollbridge.yaml')
    .option('--task <id>', 'only what was decided in this task')
    .option('--json', 'one JSON object per change, then one that sums up')
    .addHelpText(
      'after',
      folded(`Nothing runs and nothing is written. Where a rule looks at something that is not on record, because it was a secret, the
answer is "unknown" and never a guess. Exit 1: something would change.`),
    )
    .action(named(async (file, options) => (await import('./policy-diff.ts')).policyDiff(file, options)));
  program
    .command('trust')
    .description('let the rules of tollbridge.yaml in this directory count, once you have seen them')
    .argument('[dir]', 'another directory than this one')
    .option('--list', 'show what is trusted, and what has changed since')
    .option('--remove', 'trust it no longer')
    .option('--yes', 'do not ask once it is shown')
    .option('--json', 'one JSON object; with --list, one per line')
    .addHelpText(
      'after',
      folded(`A tollbridge.yaml in a working directory may have come with a repository, so by itself it counts for nothing. This shows it
whole, with every file it names, and pins them as they are. Its rules may only block, ask or defer; a file that has anything else is
refused (exit 5). When the file changes, the rules you trusted stay in force until you trust it again.

Agents, tools, listeners, secrets and allowing rules belong in your own file, which "tollbridge init" makes and
names, or in one that you name with --config.`),
    )
    .action((dir: string | undefined, _: object, self: Command) =>
      finish(async () => (await import('./trust.ts')).trust(dir, self.optsWithGlobals())),
    );
}
