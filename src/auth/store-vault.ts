/** Secrets by name among the private files of all gateways, which are sealed where they lie: one file for each vault. */
import { Fault } from '../model/faults.ts';
import { Timestamp } from '../model/schema.ts';
import { type Static, Type } from '../model/type.ts';
import { check } from '../model/validate.ts';
import { own } from '../model/values/own.ts';
import type { PrivateFiles } from '../ports/index.ts';
import type { VaultFile } from './vault-file.ts';

const Shape = Type.Object({
  format: Type.Literal('tollbridge-store-vault-1'),
  secrets: Type.Record(Type.String(), Type.Object({ value: Type.String(), updated_at: Timestamp })),
});
type Shape = Static<typeof Shape>;
const EMPTY: Shape = { format: 'tollbridge-store-vault-1', secrets: {} };

interface StoreVaultOptions {
  readonly name: string;
  readonly files: () => Promise<PrivateFiles>;
}

/** Files that this process uses anyway stay open. */
export async function using<T>(
  opened: () => Promise<PrivateFiles>,
  work: (files: PrivateFiles) => Promise<T>,
): Promise<T> {
  const files = await opened();
  try {
    return await work(files);
  } finally {
    await files.close();
  }
}

export function openStoreVault({ name: vault, files: opened }: StoreVaultOptions): VaultFile {
  const file = `vaults/${vault}.json`;

  function parse(text: string | undefined): Shape {
    if (text === undefined) return EMPTY;
    try {
      return check(Shape, JSON.parse(text), 'the file');
    } catch {
      // Without the cause, which may quote a secret.
      throw new Fault('unavailable', `the vault ${vault} in the store does not add up`);
    }
  }
  const change = (next: (secrets: Shape['secrets']) => Shape['secrets']): Promise<void> =>
    using(opened, (files) =>
      files.replace(file, (text) => {
        const found = parse(text);
        return JSON.stringify({ ...found, secrets: next(found.secrets) });
      }),
    );
  const secrets = (): Promise<Shape['secrets']> =>
    using(opened, async (files) => parse(await files.read(file)).secrets);

  return {
    get: async (name) => own(await secrets(), name)?.value,
    set: (name, value, updated_at) => change((before) => ({ ...before, [name]: { value, updated_at } })),
    async remove(name) {
      let found = false;
      await change((before) => {
        found = Object.hasOwn(before, name);
        return Object.fromEntries(Object.entries(before).filter(([each]) => each !== name));
      });
      return found;
    },
    list: async () =>
      Object.entries(await secrets())
        .map(([name, { updated_at }]) => ({ name, updated_at }))
        .toSorted((a, b) => (a.name < b.name ? -1 : 1)),
  };
}
