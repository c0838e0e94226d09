/** `tollbridge console link|sessions|sign-out`: sign-ins of the web console, beside a running gateway. */
import { openApiKeys } from '../../../auth/api-keys.ts';
import { openConsoleSessions } from '../../../auth/console-sessions.ts';
import { systemClock } from '../../../core/clock.ts';
import type { Config } from '../../../runtime/config/config.ts';
import { type CommonOptions, configFrom } from '../../context.ts';
import { trouble } from '../../output/error-output.ts';
import { counted } from '../../output/terminal-text.ts';
import { requirePerson } from '../../person-only.ts';

export interface ConsoleOptions extends CommonOptions {
  readonly json?: boolean;
}

export async function consoleLink(options: ConsoleOptions): Promise<void> {
  const config = await configFrom(options);
  requirePerson(config.dataDir, 'signing in to the console');
  const link = `${addressOf(config)}/sign-in#${await sessionsIn(config).createCode()}`;
  process.stdout.write(options.json ? `${JSON.stringify({ object: 'console_link', link })}\n` : `${link}\n`);
}

export async function listSessions(options: ConsoleOptions): Promise<void> {
  const sessions = await sessionsIn(await configFrom(options)).list();
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
  const ended = await sessionsIn(await configFrom(options)).end(id);
  if (id !== undefined && ended === 0) {
    throw trouble('not_found', `there is no session ${id}`, '"tollbridge console sessions" shows them');
  }
  process.stdout.write(options.json ? `${JSON.stringify({ ended })}\n` : `ended ${counted(ended, 'session')}\n`);
}

function sessionsIn({ dataDir }: Config) {
  const keys = openApiKeys(dataDir, systemClock);
  return openConsoleSessions({ dataDir, clock: systemClock, keyActor: keys.activeActor });
}

function addressOf({ publicUrl, host, port, tls }: Config): string {
  return publicUrl ?? `${tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
