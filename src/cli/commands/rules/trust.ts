/**
 * `tollbridge trust`: shows the `tollbridge.yaml` of a working directory whole, with every file it names, and pins them
 * as they are. From then on its rules hold there beside the user's own. They may only block, ask or defer, and a change
 * of the file counts for nothing until it has been shown and pinned again.
 */

import { dirname, resolve } from 'node:path';
import { asText } from '../../../model/values/as-text.ts';
import { visibleText } from '../../../model/values/visible-text.ts';
import { examineProject, lookAtProject, projectPath } from '../../../runtime/config/project.ts';
import {
  readTrust,
  type TrustedFile,
  trustedAt,
  withDeclined,
  withoutTrusted,
  withTrusted,
  writeTrust,
} from '../../../runtime/config/trust.ts';
import { userPaths } from '../../../runtime/config/user-paths.ts';
import { MARK } from '../../../transport/process/descendants.ts';
import { askYesOrNo } from '../../confirm.ts';
import { type CommonOptions, quietConfigFrom } from '../../context.ts';
import { us } from '../../editors/our-command.ts';
import { trouble } from '../../output/error-output.ts';
import { EXIT } from '../../output/exit-codes.ts';
import { requirePerson } from '../../person-only.ts';

interface TrustOptions extends CommonOptions {
  readonly list?: boolean;
  readonly remove?: boolean;
  /** Do not ask after showing it. */
  readonly yes?: boolean;
  readonly json?: boolean;
}

export async function trust(directory: string | undefined, options: TrustOptions): Promise<number> {
  if (options.list && options.remove) {
    throw trouble('invalid_request', '--list and --remove cannot both be meant', 'give one of them');
  }
  if (options.list) return await list(options);
  // Otherwise an agent could lift the rules that restrict it.
  requirePerson((await quietConfigFrom(options)).dataDir, 'trusting a file');
  const path = await projectPath(resolve(directory ?? '.'));
  if (options.remove) return await remove(path, options);
  const files = await examineProject(path);
  if (!options.json) process.stdout.write(shown(files));
  const mustAsk = process.stdin.isTTY && !options.yes;
  if (mustAsk && !(await agreed())) {
    process.stdout.write('not trusted: nothing of it counts\n');
    return EXIT.no;
  }
  await pin(path, files);
  const says = { path, trusted: true, files: files.map(({ path, sha256 }) => ({ path, sha256 })) };
  process.stdout.write(
    options.json
      ? `${JSON.stringify(says)}\n`
      : `trusted: its rules hold in ${visibleText(dirname(path))} from now on; a change counts for nothing until it is trusted again\n`,
  );
  return EXIT.done;
}

/**
 * For a long-running command with a person at its terminal: asks once whether the file counts. True when it is trusted
 * now. A declined file is not asked about again until it changes.
 */
export async function askForTrust(path: string): Promise<boolean> {
  const terminal = process.stdin.isTTY && process.stderr.isTTY;
  if (!terminal || process.env[MARK]) return false;
  const paths = userPaths();
  const files = await examineProject(path).catch((thrown: Error) => {
    process.stderr.write(`tollbridge: ${visibleText(thrown.message)}\n`);
    return undefined;
  });
  const sha256 = files?.[0]?.sha256;
  if (!files || !sha256) return false;
  const before = await readTrust(paths.trust);
  if (before.declined.some((each) => each.path === path && each.sha256 === sha256)) return false;
  process.stderr.write(shown(files));
  if (await agreed()) {
    await pin(path, files);
    return true;
  }
  await writeTrust(paths.trust, withDeclined(before, path, sha256));
  process.stderr.write(`not trusted; you are not asked again until it changes; to trust it after all: ${us()} trust\n`);
  return false;
}

async function agreed(): Promise<boolean> {
  const prompt = 'Do these rules count here, beside your own? [y/N] ';
  const never = new AbortController().signal;
  return (await askYesOrNo({ input: process.stdin, output: process.stderr }, prompt, never)) === 'yes';
}

async function pin(path: string, files: readonly TrustedFile[]): Promise<void> {
  const { trust } = userPaths();
  const pinned = { path, trusted_at: new Date().toISOString(), files: [...files] };
  await writeTrust(trust, withTrusted(await readTrust(trust), pinned));
}

function shown(files: readonly TrustedFile[]): string {
  return files
    .map(({ path, sha256, text }) => `${visibleText(path)}\n${sha256}\n\n${numbered(text)}\n`)
    .join('')
    .concat(
      'Its rules may only block, ask or defer. They can stop what your own rules allow, and never allow anything.\n',
    );
}

async function remove(path: string, { json }: TrustOptions): Promise<number> {
  const { trust } = userPaths();
  const store = await readTrust(trust);
  if (!trustedAt(store, path)) {
    throw trouble('not_found', `${path} is not trusted`, `see what is with: ${us()} trust --list`);
  }
  await writeTrust(trust, withoutTrusted(store, path));
  process.stdout.write(
    json ? `${JSON.stringify({ path, trusted: false })}\n` : `no longer trusted: ${visibleText(path)}\n`,
  );
  return EXIT.done;
}

async function list({ json }: TrustOptions): Promise<number> {
  const paths = userPaths();
  const { trusted } = await readTrust(paths.trust);
  for (const { path, trusted_at, files } of trusted) {
    const project = await lookAtProject(dirname(path), paths, paths.file);
    const state = project?.state ?? 'gone';
    const digests = files.map(({ path, sha256 }) => ({ path, sha256 }));
    process.stdout.write(
      json
        ? `${JSON.stringify({ path, state, trusted_at, files: digests })}\n`
        : `${state.padEnd(8)} ${visibleText(path)}\n${digests.map((each) => `         ${each.sha256}  ${visibleText(each.path)}\n`).join('')}`,
    );
  }
  if (trusted.length === 0 && !json) process.stdout.write('No file of a working directory is trusted.\n');
  return EXIT.done;
}

/** With a number before each line, so that the text cannot fake the end of the file. */
function numbered(text: string): string {
  // Line by line, so that empty lines keep their numbers.
  const lines = text.replace(/\n$/, '').split('\n');
  const width = asText(lines.length).length;
  return lines.map((line, index) => `${asText(index + 1).padStart(width)} | ${visibleText(line)}\n`).join('');
}
