/** Definition of `agents`. */
import type { Command } from 'commander';
import { folded } from '../../output/help-text.ts';
import { named, run } from '../../run-command.ts';

export function addAgents(program: Command): void {
  const agents = program
    .command('agents')
    .description('list configured agents, and switch one off or on')
    .addHelpText(
      'after',
      folded(`An agent that is switched off accepts no new work at any door, and every refusal says why. Work that waits behind other work of its
session is refused when its turn comes, unless the agent is on again by then. Work it has begun goes on; end that with "tollbridge task" and a
cancel of the client. Which key may call which agent: "tollbridge keys create --agent".

  tollbridge agents off coder --reason "costs too much today"
  tollbridge agents on coder`),
    );
  agents
    .command('list')
    .description('list the agents of the configuration')
    .option('--json', 'one JSON object per line')
    .addHelpText(
      'after',
      folded('Columns: name, protocol, on or off and why, and the limits of its quota with what is used of them.'),
    )
    .action(run(async (options) => (await import('./agents.ts')).listAgents(options)));
  agents
    .command('off')
    .description('accept no new work for an agent, at once and in every process')
    .argument('<name>', 'as "tollbridge agents list" shows it')
    .option('--reason <text>', 'part of every refusal (default: a person did it)')
    .option('--json', 'one JSON object')
    .addHelpText(
      'after',
      folded('Takes effect at the next request, also in a running gateway, and is written to the log.'),
    )
    .action(named(async (name, options) => (await import('./agents.ts')).switchAgent(name, 'off', options)));
  agents
    .command('on')
    .description('accept work for an agent again')
    .argument('<name>', 'as "tollbridge agents list" shows it')
    .option('--json', 'one JSON object')
    .addHelpText('after', folded('An agent with "off" in the configuration stays off until that is removed.'))
    .action(named(async (name, options) => (await import('./agents.ts')).switchAgent(name, 'on', options)));
}
