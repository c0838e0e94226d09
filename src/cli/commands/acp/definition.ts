/** Definitions of `acp` (between an editor and its agent) and `acp-agent` (an editor's agent). */
import type { Command } from 'commander';
import { folded } from '../../output/help-text.ts';
import { finish, run } from '../../run-command.ts';
import type { AcpAgentOptions } from './acp-agent.ts';

export function addAcp(program: Command): void {
  program
    .command('acp')
    .description('put the gateway between an editor and its ACP agent: tollbridge acp -- COMMAND')
    .usage('[options] -- <command...>')
    .argument('<command...>', "the agent's command, after --")
    .option('--name <name>', 'name of the agent in rules and the log (default: its own name for itself)')
    .option('--hide-always', 'hide "always allow" options, after which the agent would no longer ask')
    .option('--no-hide-always', 'show them, even if the configuration hides them')
    .option('--no-additions', 'add nothing to forwarded frames: sessions are restored by the agent alone')
    .option('--additions', 'add what the relay can do, even if the configuration says otherwise')
    .option('--blocked-terminal <how>', 'answer to a blocked terminal request: exit126 or error')
    .option('--mcp <server...>', 'an MCP server to add to every session: a name under tools, an address, or a command')
    .option('--stall <duration>', 'stop the agent after this long without output in a turn: 10m, or off (default: 30m)')
    .option('--thoughts <what>', 'how reasoning is recorded for other readers: show, summary or drop (default: show)')
    .addHelpText(
      'after',
      folded(`In the editor's settings, put this command in front of the agent's own command. Messages pass through unchanged. From then on
your rules decide every act, approvals can be answered in the editor or elsewhere, and every turn has a receipt.`),
    )
    .action((agent: string[], _: object, command: Command) =>
      finish(async () => (await import('./acp.ts')).acp(agent, command.optsWithGlobals())),
    );

  program
    .command('acp-agent')
    .description('serve any configured agent to an editor as an ACP agent')
    .option('--agent <name>', 'the agent that does the work (default: the first in the configuration)')
    .option('--persona <id>', 'the persona it works as: persona_NAME, for NAME under personas in the configuration')
    .option('--journal <file>', 'append one line for every effect of the demo tools')
    .addHelpText(
      'after',
      folded(`Use this as the agent's command in the editor's settings. The agent named in the configuration does the work, whatever
protocol it speaks; without one, the built-in demo agent does. Standard output carries ACP messages only.`),
    )
    .action(run<AcpAgentOptions>(async (options) => (await import('./acp-agent.ts')).acpAgent(options)));
}
