/** `tollbridge store check`: whether a log is whole, safe and up to date. Each finding that is not well says what to do. */
import { systemClock } from '../../../core/clock.ts';
import { projector } from '../../../core/events/projector.ts';
import type { Config } from '../../../runtime/config/config.ts';
import { hasLog, isDatabase, openStore, type StoreLocation, schemaOf, storeName } from '../../../store/index.ts';
import { type CommonOptions, configFrom } from '../../context.ts';
import { opened } from '../../doctor/data.ts';
import { lookAtDatabase } from '../../doctor/database.ts';
import { bad, type Finding, findingLine, ok } from '../../doctor/finding.ts';
import { errorMessageOf, trouble } from '../../output/error-output.ts';
import { EXIT } from '../../output/exit-codes.ts';
import { counted } from '../../output/terminal-text.ts';
import { verifyAll } from '../proof/verify-log.ts';
import { keysOf, locate } from './locate.ts';

export interface CheckOptions extends CommonOptions {
  readonly secret?: string;
  readonly schema?: string;
  readonly keys?: string;
  readonly json?: boolean;
}

export async function storeCheck(which: string | undefined, options: CheckOptions): Promise<number> {
  const config = await configFrom(options);
  const location = which === undefined ? config.store : locate(which, options, config);
  const findings: Finding[] = [];
  const report = (more: readonly Finding[]): void => {
    for (const finding of more) {
      findings.push(finding);
      process.stdout.write(options.json ? `${JSON.stringify(finding)}\n` : findingLine(finding));
    }
  };
  const failed = () => findings.some(({ state }) => state === 'bad');
  const before = await versionBefore(location);
  if (typeof before !== 'string') report(before);
  if (!failed()) report(isDatabase(location) ? await lookAtDatabase(location) : await lookAtFile(location));
  if (!failed() && typeof before === 'string') report([await versionNow(location, before)]);
  if (!failed()) report(await lookInside(location, config));
  return failed() ? EXIT.no : EXIT.done;
}

/** The version of the schema; a finding where it cannot be asked for. */
async function versionBefore(location: StoreLocation): Promise<string | readonly Finding[]> {
  try {
    if (await hasLog(location)) return (await schemaOf(location)).found;
  } catch (thrown) {
    return [problem(thrown)];
  }
  throw trouble('not_found', `there is no log in ${storeName(location)}`, 'name a file, its directory, or a URL');
}

async function versionNow(location: StoreLocation, before: string): Promise<Finding> {
  const { found, newest } = await schemaOf(location);
  if (found !== newest) return ok('schema', `${found}, newer than this program's ${newest}, and usable by both`);
  return ok('schema', found === before ? `${found}, the newest` : `${found}, the newest; it was ${before}`);
}

async function lookAtFile(location: StoreLocation): Promise<readonly Finding[]> {
  try {
    return [await opened(storeName(location), location)];
  } catch (thrown) {
    return [problem(thrown)];
  }
}

async function lookInside(location: StoreLocation, config: Config): Promise<readonly Finding[]> {
  const store = await openStore(location, { clock: systemClock, projector });
  try {
    const { jwks, where } = await keysOf(location, config);
    if (!jwks) return [bad('keys', `the keys that sign its receipts are not there: ${where}`, KEYS)];
    const { first_bad, records, events, rows } = await verifyAll(store, jwks);
    if (first_bad) return [bad('contents', first_bad.message, adviceFor(first_bad.code))];
    const unproven = rows?.unproven ? `, ${rows.unproven} rest on pruned events` : '';
    return [
      ok('receipts', `${counted(records, 'receipt')}, nothing missing, nothing changed`),
      ok(
        'events',
        `${counted(events?.events ?? 0, 'event')}, without a gap in positions or sequences; ${counted(events?.heads ?? 0, 'signed head')} fit`,
      ),
      ok('rows', `${counted(rows?.compared ?? 0, 'row')} equal to a rebuild${unproven}`),
    ];
  } catch (thrown) {
    return [problem(thrown)];
  } finally {
    await store.close();
  }
}

const KEYS = 'name the data directory with --data DIR';
const RESTORE = 'restore the log from a backup, and compare it with: tollbridge verify all --witness';

/** Rows can be computed again from the events; nothing else can. */
function adviceFor(code: string): string {
  return code === 'row_mismatch'
    ? 'the events are intact, so another program changed the row: find out which, and restore the log from a backup'
    : RESTORE;
}

function problem(thrown: unknown): Finding {
  const { sentence, fix } = errorMessageOf(thrown);
  return bad('log', sentence, fix ?? RESTORE);
}
