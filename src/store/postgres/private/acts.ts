/** Acts that wait for approval, sealed by the caller, in a table beside the log: any gateway can show and run them. */
import type { ActRows } from '../../pending-acts.ts';
import type { Connections } from '../connection/connections.ts';
import { filledIn } from '../schema/migrations.ts';

export function createActRows(
  connections: Connections,
  schema: string,
  guarded: <T>(work: () => Promise<T>) => Promise<T>,
): ActRows {
  const sql = (text: string) => filledIn(text, schema);
  const KEEP = sql(`INSERT INTO $S.private_acts (ask, sealed) VALUES ($1, $2)
    ON CONFLICT (ask) DO UPDATE SET sealed = excluded.sealed`);
  const READ = sql('SELECT sealed FROM $S.private_acts WHERE ask = $1');
  const DROP = sql('DELETE FROM $S.private_acts WHERE ask = $1');
  const LIST = sql('SELECT ask, (extract(epoch FROM now() - at) * 1000)::float8 FROM $S.private_acts');
  return {
    async keep(askId, sealed) {
      const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength);
      await guarded(() => connections.query(KEEP, [askId, bytes]));
    },
    read: async (askId) => (await guarded(() => connections.query(READ, [askId])))[0]?.[0] as Uint8Array | undefined,
    drop(askId) {
      // One that stays is dropped when the acts are listed.
      connections.query(DROP, [askId]).catch(() => undefined);
    },
    async list() {
      const found = await guarded(() => connections.query(LIST));
      return found.map(([askId, ageMs]) => ({ askId: askId as string, ageMs: ageMs as number }));
    },
  };
}
