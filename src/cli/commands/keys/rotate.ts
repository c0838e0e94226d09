/** `tollbridge keys rotate`: a new key for receipts. Receipts signed with the old one can still be verified. */
import { createIds } from '../../../core/clock.ts';
import { createLog } from '../../../core/events/log.ts';
import { createRedactor } from '../../../core/redaction/redact.ts';
import type { EventDraft } from '../../../model/events.ts';
import type { Store } from '../../../ports/index.ts';
import {
  type CommonOptions,
  configFrom,
  hasLog,
  localActor,
  lookInto,
  requireUsable,
  withInstallation,
} from '../../context.ts';
import { requirePerson } from '../../person-only.ts';

export async function rotateKey(options: CommonOptions & { readonly json?: boolean }): Promise<void> {
  const config = await configFrom(options);
  const { dataDir } = config;
  requirePerson(dataDir, 'changing the signing key');
  await requireUsable(dataDir);
  const { retired, current, jwks } = await withInstallation(config, async (installation) => {
    const keyring = await installation.keyring();
    const retired = keyring.signer().keyId;
    await keyring.rotate();
    return { retired, current: keyring.signer().keyId, jwks: keyring.jwks() };
  });
  if (await hasLog(config)) await lookInto(options, ({ store }) => note(store, retired, current));
  process.stdout.write(
    options.json
      ? `${JSON.stringify({ retired, current, keys: jwks.keys })}\n`
      : `Receipts are signed with ${current} from now on.\n${retired} is retired; what it signed can still be checked.\n`,
  );
}

/** Records when the key changed, and who changed it. */
async function note(store: Store, retired: string, current: string): Promise<void> {
  const text = `receipts are signed with ${current} from now on; ${retired} is retired`;
  const event: EventDraft = {
    event: 'vendor.tollbridge.note',
    resource: { object: 'receipt_key', id: current },
    actor: localActor().id,
    payload: { text, retired, current },
  };
  const log = createLog({ store, redactor: createRedactor(), ids: createIds(), inlineLimit: 64 * 1024 });
  await log.commit({ decide: () => ({ events: [event] }) });
}
