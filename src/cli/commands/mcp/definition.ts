/**
 * Definitions of `mcp` (between a client and its MCP server), of `mcp login`, and of the commands for changed tools.
 */
import type { Command } from 'commander';
import { folded } from '../../output/help-text.ts';
import { finish, named, run } from '../../run-command.ts';

export function addMcp(program: Command): void {
  const mcp = program
    .command('mcp')
    .description('stand between a client and its MCP server: tollbridge mcp -- COMMAND')
    .usage('[options] -- <command...>')
    .argument('[command...]', "the server's command, after --")
    .option('--url <address>', 'a server that is there, instead of a command')
    .option('--server <name>', 'a server the configuration has, under tools')
    .option('--name <name>', 'what rules and the log call the server (default: its command)')
    .addHelpText(
      'after',
      folded(`In the client's settings, put this command in front of the server's own. Tools, prompts and resources are the server's;
each call of a tool is decided by the rules, written down, and on a receipt. Questions are put to you by the client where it
can, and can always be answered with "tollbridge approve".`),
    )
    .action((command: string[], _: object, self: Command) =>
      finish(async () => (await import('./mcp.ts')).mcp(command, self.optsWithGlobals())),
    );
  mcp
    .command('login')
    .description('sign in at a server that wants a person to')
    .argument('<server>', 'its name in the configuration, under tools')
    .option('--no-browser', 'only print the address')
    .option('--paste', 'the browser is on another machine: paste the address it ends up at')
    .addHelpText(
      'after',
      folded(`For servers with "sign_in: {}" in the configuration. The browser goes to the server's authorization server and comes back
here; the tokens go into a vault, are refreshed by whoever uses them, and are never shown. Signing in again replaces them.`),
    )
    .action(named(async (server, options) => (await import('./login.ts')).login(server, options)));
  mcp
    .command('changes')
    .description('show tools that are no longer what they were when first seen')
    .option('--json', 'one JSON object per line')
    .addHelpText(
      'after',
      folded(`When a server changes the name, description, schema or hints of a tool, the tool is gone until somebody has looked
at what changed. Each is shown with the difference, line by line.`),
    )
    .action(run(async (options) => (await import('./mcp.ts')).listPins(options)));
  mcp
    .command('accept')
    .description('let a changed tool be used as it is now')
    .argument('<server>', 'the server, as "tollbridge mcp changes" shows it')
    .argument('<tool>', 'the tool, likewise')
    .addHelpText(
      'after',
      folded(`From then on the tool is what it says it is now; the next change waits again (exit 3 when none waits).

  tollbridge mcp accept files read_file`),
    )
    .action((server: string, tool: string, _: object, self: Command) =>
      finish(async () => (await import('./mcp.ts')).acceptPin(server, tool, self.optsWithGlobals())),
    );
}
