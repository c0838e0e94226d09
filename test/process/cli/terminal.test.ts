/** The demo with a person's keystrokes: the commands it prints are the commands that are typed. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { askYesOrNo } from '../../../src/cli/confirm.ts';
import { onStop } from '../../../src/cli/stop-signals.ts';
import { aLog, aShell } from '../../support/process/cli.ts';
import { hasTmux, inTmux, openTerminal } from '../../support/process/terminal.ts';

test.each([...(hasTmux ? (['tmux'] as const) : []), 'pipes' as const])(
  'asked in %s, a person says yes, checks the proof, breaks it, and learns which record is wrong',
  async (kind) => {
    const terminal = await openTerminal(kind, await aShell());
    await terminal.command('tollbridge demo --data d');
    await terminal.shows(/Allow it\? \[y\/n\] $/);
    await terminal.type('what?');
    await terminal.shows(/Please answer y or n\./);
    await terminal.type('y');
    const screen = await terminal.shows(/^ {2}.* log$/);
    // In a terminal the demo serves the console too, and a process that serves is on record before anything else.
    expect(screen).toMatch(/event (29|30) +approved +by local:/);
    expect(screen).toMatch(/event (34|35) +succeeded +send_mail: Mail to ana is sent\./);
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

test.runIf(hasTmux)(
  'serve asks once whether the file of a directory counts: a no is kept until it changes, a yes holds',
  async () => {
    const { cwd, env } = await aShell();
    const terminal = await inTmux({ cwd, env });
    await writeFile(join(cwd, 'tollbridge.yaml'), 'rules: [{ id: no-mail, when: { effect: send }, then: block }]\n');
    await terminal.command('tollbridge serve --port 0');
    await terminal.shows(/^1 \| rules: \[\{ id: no-mail/);
    await terminal.shows(/Do these rules count here, beside your own\? \[y\/N\] $/);
    await terminal.type('n');
    await terminal.shows(/^not trusted; you are not asked again until it changes/);
    const first = await terminal.shows(/Approvals: /);
    expect(first).toContain('is not trusted and was not read');
    await terminal.interrupt();
    await terminal.command('tollbridge serve --port 0');
    await terminal.shows(/Approvals: /, 2);
    await terminal.interrupt();
    await writeFile(join(cwd, 'tollbridge.yaml'), 'rules: [{ id: no-pay, when: { effect: pay }, then: block }]\n');
    await terminal.command('tollbridge serve --port 0');
    await terminal.shows(/Do these rules count here/, 2);
    await terminal.type('y');
    const last = await terminal.shows(/Approvals: /, 3);
    expect(last).toMatch(/Configuration: trusted rules in \S+tollbridge\.yaml/);
    await terminal.interrupt();
  },
  90_000,
);

/** A terminal as Node sees one: keys arrive one by one, and Ctrl-C is one of them. There is one everywhere. */
function aKeyboard() {
  const keys = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => keys });
  const screen = new PassThrough();
  return { keys, screen, seen: () => String(screen.read() ?? '') };
}

test.each([
  ['y\r', 'yes'],
  ['N\r', 'no'],
  ['\u0003', 'interrupted'],
  ['y\u007fno\r', 'no'],
])('keys %j at the question are %s', async (typed, said) => {
  const { keys, screen } = aKeyboard();
  const asked = askYesOrNo({ input: keys, output: screen }, 'Allow it? [y/n] ', new AbortController().signal);
  keys.write(typed);
  expect(await asked).toBe(said);
});

test('a terminal that is closed is a wish to stop; without one it is not listened for', () => {
  const stops: string[] = [];
  const at = onStop(() => stops.push('at a terminal'), true);
  const none = onStop(() => stops.push('without'), false);
  process.emit('SIGHUP');
  at();
  none();
  expect(stops).toEqual(['at a terminal']);
  expect(process.listenerCount('SIGHUP')).toBe(0);
});

// In a real terminal the whole of it: key, program, exit code, and the command that goes on. Where there is none, the key is tried above,
// and test/process/cli/demo.test.ts stops the program by signal and goes on.
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

  test('Ctrl-C lets a gateway end in order, and the next one says what waits', async () => {
    const shell = await aShell();
    await aLog(['send the plan to ana'], { approve: 'leave open', at: join(shell.cwd, 'd') });
    const terminal = await open(shell);
    await terminal.command('tollbridge --data d serve --port 0; echo "ended $?"');
    const first = await terminal.shows(/Approvals: .*approvals {2}\(1 pending\)$/);
    expect(first).toMatch(/^tollbridge listens on http:\/\/127\.0\.0\.1:\d+ {2}\(token \S+\)$/m);
    await terminal.interrupt();
    await terminal.shows(/^stopping: running work is ended, approvals stay pending$/);
    await terminal.shows(/^ended 0$/);
    await terminal.command('tollbridge --data d serve --port 0; echo "ended $?"');
    await terminal.shows(/\(1 pending\)$/, 2);
    await terminal.interrupt();
    await terminal.shows(/^ended 0$/, 2);
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
