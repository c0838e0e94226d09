/** Definitions of `acp` (between an editor and its agent) and `acp-agent` (an editor's agent). */
import type { Command } from 'commander';
import { folded } from '../../output/help-text.ts';
import { finish, run } from '../../run-command.ts';
import type { AcpAgentOptions } from './acp-agent.ts';

export function addAcp(program: Command): void {
  program
    .command('acp')
    .description('stand between an editor and its ACP agent: tollbridge acp -- COMMAND')
    .usage('[options] -- <command...>')
    .argument('<command...>', "the agent's command, after --")
    .option('--name <name>', 'what rules and the log call the agent (default: its command)')
    .option('--hide-always', 'do not offer options after which the agent asks no more')
    .option('--no-hide-always', 'offer them, whatever the configuration says')
    .option('--blocked-terminal <how>', 'what an agent sees of a terminal it may not have: exit126 or error')
    .option(
      '--mcp <server...>',
      'an MCP server to offer in every session: a name under tools, an address, or a command',
    )
    .option('--stall <duration>', 'how long the agent may say nothing in a turn: 10m, or off (default: 30m)')
    .option('--thoughts <what>', 'what others who watch see of its thoughts: show, summary or drop (default: show)')
    .addHelpText(
      'after',
      folded(`In the editor's settings, put this command in front of the agent's own. Nothing else changes: frames arrive as they left,
and from then on one set of rules decides, questions can be answered here or elsewhere, and every turn has a receipt.`),
    )
    .action((agent: string[], _: object, command: Command) =>
      finish(async () => (await import('./acp.ts')).acp(agent, command.optsWithGlobals())),
    );

  program
    .command('acp-agent')
    .description("be an editor's ACP agent, whoever does the work here")
    .option('--agent <name>', 'who does the work (default: the default agent)')
    .option('--persona <id>', 'who it works as: persona_NAME, where personas of the configuration has NAME')
    .addHelpText(
      'after',
      folded(`An editor starts this as if it were an agent, and the work is done by whoever the configuration names, whatever
protocol they speak; by the built-in demo agent when it names nobody. Nothing but the protocol goes to standard output. In the editor's
settings, give it as the agent's command.`),
    )
    .action(run<AcpAgentOptions>(async (options) => (await import('./acp-agent.ts')).acpAgent(options)));
}
