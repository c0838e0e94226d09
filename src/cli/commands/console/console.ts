/** `tollbridge console link|sessions|sign-out`: sign-ins of the web console, beside a running gateway. */
import { openApiKeys } from '../../../auth/api-keys.ts';
import { type ConsoleSessions, openConsoleSessions } from '../../../auth/console-sessions.ts';
import { systemClock } from '../../../core/clock.ts';
import type { Config } from '../../../runtime/config/config.ts';
import { type CommonOptions, configFrom, withInstallation } from '../../context.ts';
import { trouble } from '../../output/error-output.ts';
import { counted } from '../../output/terminal-text.ts';
import { requirePerson } from '../../person-only.ts';

export interface ConsoleOptions extends CommonOptions {
  readonly json?: boolean;
}

export async function consoleLink(options: ConsoleOptions): Promise<void> {
  const config = await configFrom(options);
  requirePerson(config.dataDir, 'signing in to the console');
  const link = `${addressOf(config)}/sign-in#${await withSessions(config, (sessions) => sessions.createCode())}`;
  process.stdout.write(options.json ? `${JSON.stringify({ object: 'console_link', link })}\n` : `${link}\n`);
}

export async function listSessions(options: ConsoleOptions): Promise<void> {
  const sessions = await withSessions(await configFrom(options), (all) => all.list());
  for (const session of sessions) {
    const { id, actor, how, created_at, expires_at } = session;
    process.stdout.write(
      options.json
        ? `${JSON.stringify(session)}\n`
        : `${id}  ${actor.id}  by ${how}  since ${created_at}  until ${expires_at}\n`,
    );
  }
  if (!options.json && sessions.length === 0) process.stdout.write('no browser is signed in\n');
}

export async function signOut(id: string | undefined, options: ConsoleOptions): Promise<void> {
  const ended = await withSessions(await configFrom(options), (sessions) => sessions.end(id));
  if (id !== undefined && ended === 0) {
    throw trouble('not_found', `there is no session ${id}`, '"tollbridge console sessions" shows them');
  }
  process.stdout.write(options.json ? `${JSON.stringify({ ended })}\n` : `ended ${counted(ended, 'session')}\n`);
}

function withSessions<T>(config: Config, use: (sessions: ConsoleSessions) => Promise<T>): Promise<T> {
  return withInstallation(config, ({ files }) => {
    const keys = openApiKeys(files, systemClock);
    return use(openConsoleSessions({ files, clock: systemClock, keyActor: keys.activeActor }));
  });
}

function addressOf({ publicUrl, host, port, tls }: Config): string {
  return publicUrl ?? `${tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
