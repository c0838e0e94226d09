/** `tollbridge vault set|list|remove`: secrets by name. A value is read from standard input and never printed. */
import { fileVault, listSecrets, requireLength, requireSecretName } from '../../../auth/vaults.ts';
import { systemClock } from '../../../core/clock.ts';
import { Fault } from '../../../model/faults.ts';
import { type CommonOptions, configFrom } from '../../context.ts';
import { requirePerson } from '../../person-only.ts';

export interface VaultOptions extends CommonOptions {
  readonly vault?: string;
  readonly json?: boolean;
}

export async function vaultSet(name: string, options: VaultOptions): Promise<void> {
  requireSecretName(name);
  const { vaults, dataDir } = await configFrom(options);
  requirePerson(dataDir, 'writing a secret');
  const { source, vault } = fileVault(vaults, process.env, options.vault);
  const value = await valueFrom(process.stdin);
  requireLength(value, name);
  await vault.set(name, value, systemClock.now());
  process.stdout.write(resultLine('Kept', source.name, name, options));
}

export async function vaultList(options: VaultOptions): Promise<void> {
  const { vaults } = await configFrom(options);
  if (options.vault && !vaults.some(({ name }) => name === options.vault))
    throw new Fault('not_found', `there is no vault ${options.vault}`);
  const wanted = vaults.filter(({ name }) => !options.vault || name === options.vault);
  const listed = await listSecrets(wanted, process.env);
  for (const secret of listed) {
    const { vault, name, updated_at } = secret;
    process.stdout.write(
      options.json ? `${JSON.stringify(secret)}\n` : `${vault}:${name}  ${updated_at ?? 'variable'}\n`,
    );
  }
  if (listed.length === 0 && !options.json) process.stdout.write('There are no secrets.\n');
}

export async function vaultRemove(name: string, options: VaultOptions): Promise<void> {
  const { vaults, dataDir } = await configFrom(options);
  requirePerson(dataDir, 'removing a secret');
  const { source, vault } = fileVault(vaults, process.env, options.vault);
  if (!(await vault.remove(name))) throw new Fault('not_found', `there is no secret ${source.name}:${name}`);
  process.stdout.write(resultLine('Removed', source.name, name, options));
}

function resultLine(word: string, vault: string, name: string, { json }: VaultOptions): string {
  return json ? `${JSON.stringify({ vault, name })}\n` : `${word}: ${vault}:${name}\n`;
}

const MOST_BYTES = 64 * 1024;

/** A typed value would be visible on the screen, and an argument in the shell's history; so it has to be piped. */
async function valueFrom(input: NodeJS.ReadStream): Promise<string> {
  if (input.isTTY) throw new Fault('invalid_request', 'pipe the value in: tollbridge vault set NAME < file');
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of input) {
    chunks.push(Buffer.from(chunk));
    length += chunk.length;
    if (length > MOST_BYTES) throw new Fault('payload_too_large', `a secret has at most ${MOST_BYTES} bytes`);
  }
  // The newline most programs end their output with is not part of the secret.
  return Buffer.concat(chunks)
    .toString('utf8')
    .replace(/\r?\n$/, '');
}
