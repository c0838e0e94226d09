/**
 * Definitions of `mcp` (between a client and its MCP server), of `mcp login`, and of the commands for changed tools.
 */
import type { Command } from 'commander';
import { folded } from '../../output/help-text.ts';
import { finish, named, run } from '../../run-command.ts';

export function addMcp(program: Command): void {
  const mcp = program
    .command('mcp')
    .description('put the gateway between a client and its MCP server: tollbridge mcp -- COMMAND')
    .usage('[options] -- <command...>')
    .argument('[command...]', "the server's command, after --")
    .option('--url <address>', 'address of a running server, instead of a command')
    .option(
      '--header-env <header=variable...>',
      'with --url: headers to send, each with the variable that holds its value',
    )
    .option('--transport <name>', 'with --url: auto, streamable or sse (default: auto)')
    .option('--server <name>', 'name of a server under tools in the configuration')
    .option('--name <name>', 'name of the server in rules and the log (default: its command)')
    .addHelpText(
      'after',
      folded(`In the client's settings, put this command in front of the server's own command. The client sees the server's tools, prompts and
resources. Your rules decide each tool call; calls are recorded in the log and in a receipt. If the client supports elicitation it shows
approvals; they can always be answered with "tollbridge approve".`),
    )
    .action((command: string[], _: object, self: Command) =>
      finish(async () => (await import('./mcp.ts')).mcp(command, self.optsWithGlobals())),
    );
  mcp
    .command('login')
    .description('sign in to a server that requires OAuth')
    .argument('<server>', 'name of the server under tools in the configuration, or with --url any name')
    .option('--url <address>', 'address of a server that a client starts with "tollbridge mcp --url"')
    .option('--no-browser', 'only print the sign-in address')
    .option('--paste', 'for a browser on another machine: paste the address it is redirected to')
    .option('--as <principal>', 'whose sign-in it is, where each caller has one')
    .option('--tenant <id>', 'the tenant of that principal')
    .addHelpText(
      'after',
      folded(`For servers with "sign_in: {}" in the configuration, or "sign_in: { per: caller }" and --as. The browser opens the server's authorization server and is redirected back
here. The tokens are stored in a vault, refreshed when they are used, and never shown. Signing in again replaces them.`),
    )
    .action(named(async (server, options) => (await import('./login.ts')).login(server, options)));
  mcp
    .command('logout')
    .description('end a sign-in, and revoke its tokens')
    .argument('<server>', 'name of the server under tools in the configuration')
    .option('--as <principal>', 'whose sign-in it is, where each caller has one')
    .option('--tenant <id>', 'the tenant of that principal')
    .addHelpText(
      'after',
      folded(`Removes the tokens from the vault and asks the authorization server to revoke them. A gateway that runs stops using them within
seconds (exit 3 when there is no such sign-in).`),
    )
    .action(named(async (server, options) => (await import('./logout.ts')).logout(server, options)));
  mcp
    .command('changes')
    .description('list tools whose definition has changed since first seen')
    .option('--json', 'one JSON object per line')
    .addHelpText(
      'after',
      folded(`When a server changes the name, description, schema or hints of a tool, the tool is hidden until a person has looked
at the change. Each is shown as a diff.`),
    )
    .action(run(async (options) => (await import('./accept.ts')).listPins(options)));
  mcp
    .command('accept')
    .description('accept the tools of a server as they are now')
    .argument('<server>', 'the server, as in rules and the log')
    .argument('[tool...]', 'only these tools (default: all of them)')
    .option('--yes', 'do not ask, for scripts')
    .addHelpText(
      'after',
      folded(`Lists the tools with the effect that their server states for each, and any change since they were first seen, and asks once for
all of them. From then on that effect counts, so tools that only read are not asked about; others are decided by your rules. The definitions
become the pinned ones: a change hides the tool until it is accepted again (exit 3 when there is nothing to accept). The server is found in
your configuration, or in the settings of a client where "tollbridge init" named it; otherwise tools that were called before are listed.

  tollbridge mcp accept files
  tollbridge mcp accept files read_file`),
    )
    .action((server: string, tools: string[], _: object, self: Command) =>
      finish(async () => (await import('./accept.ts')).accept(server, tools, self.optsWithGlobals())),
    );
}
