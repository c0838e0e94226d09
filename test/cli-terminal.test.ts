/** The demo with a person's keystrokes: the commands it prints are the commands that are typed. */
import { expect, test } from 'vitest';
import { aShell } from './support/cli.ts';
import { hasTmux, inTmux, openTerminal } from './support/terminal.ts';

test.each([...(hasTmux ? (['tmux'] as const) : []), 'pipes' as const])(
  'asked in %s, a person says yes, checks the proof, breaks it, and is told which record',
  async (kind) => {
    const terminal = await openTerminal(kind, await aShell());
    await terminal.command('tollbridge demo --data d');
    await terminal.shows(/Allow it\? \[y\/n\] $/);
    await terminal.type('what?');
    await terminal.shows(/Please answer y or n\./);
    await terminal.type('y');
    const screen = await terminal.shows(/^ {2}.* log$/);
    expect(screen).toMatch(/event 26 +approved +by local:/);
    expect(screen).toMatch(/event 31 +done +send_mail: Mail to ana is sent\./);
    const [, check = '', touch = ''] = /^ {2}(.* verify \S+)\n[^\n]*\n {2}(sed .*)$/m.exec(screen) ?? [];
    const receipt = /receipt +(receipt_\w+)/.exec(screen)?.[1] ?? '';
    await terminal.command(check);
    await terminal.shows(/^ok +1 receipt, nothing missing, nothing changed/);
    await terminal.command(touch);
    await terminal.command(check);
    await terminal.shows(new RegExp(`^BAD  line 1, receipt ${receipt}: its content does not match its hash`));
  },
  60_000,
);

// The key becomes a signal in a real terminal only; where there is none, test/cli-demo.test.ts sends the signal itself.
for (const open of hasTmux ? [inTmux] : []) {
  test('Ctrl-C at the question loses nothing: the command it prints goes on', async () => {
    const terminal = await open(await aShell());
    await terminal.command('tollbridge demo --data d; echo "ended $?"');
    await terminal.shows(/Allow it\? \[y\/n\] $/);
    await terminal.interrupt();
    const screen = await terminal.shows(/^ended 130$/);
    await terminal.command(/^ {2}(.* demo --data \S+)$/m.exec(screen)?.[1] ?? '');
    await terminal.shows(/Allow it\? \[y\/n\] $/, 2);
    await terminal.type('n');
    await terminal.shows(/I was not allowed to send mail to ana/);
  }, 60_000);
}

// Editors let people log in to an agent by running its command, with what the agent wants added to it, in a terminal.
for (const open of hasTmux ? [inTmux] : []) {
  test('in a terminal the agent behind the relay is run as it is, with what was added to its command', async () => {
    const terminal = await open(await aShell());
    const agent = 'console.log("tty", process.stdin.isTTY, String(process.argv.slice(1))); process.exit(3)';
    await terminal.command(`tollbridge acp --data d -- node -e '${agent}' login --now; echo "ended with $?"`);
    await terminal.shows(/^tty true login,--now$/);
    await terminal.shows(/^ended with 3$/);
  });
}
