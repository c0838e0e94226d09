/**
 * What every store promises, whatever it is made of. A store is opened with the clock and the projector given here, so
 * that the same expectations hold for all of them.
 */
import { describe } from 'vitest';
import { blobsPromises } from './store/blobs.ts';
import { closingPromises } from './store/closing.ts';
import { commitsPromises } from './store/commits.ts';
import { followPromises } from './store/follow.ts';
import { idempotencyPromises } from './store/idempotency.ts';
import { leasesPromises } from './store/leases.ts';
import { projectionsPromises } from './store/projections.ts';
import { receiptsPromises } from './store/receipts.ts';
import { repeatsPromises } from './store/repeats.ts';
import { retentionPromises } from './store/retention.ts';
import { type ContractDeps, type OpenedStore, setScene } from './store/scenes/scene.ts';
import { streamsPromises } from './store/streams.ts';
import { twoPromises } from './store/two.ts';

export function storeContract(name: string, open: (deps: ContractDeps) => Promise<OpenedStore>): void {
  describe(`${name} keeps the store's promises`, () => {
    const scene = setScene(open);
    commitsPromises(scene);
    idempotencyPromises(scene);
    streamsPromises(scene);
    followPromises(scene);
    projectionsPromises(scene);
    receiptsPromises(scene);
    retentionPromises(scene);
    repeatsPromises(scene);
    blobsPromises(scene);
    leasesPromises(scene);
    closingPromises(scene);
    twoPromises(scene);
  });
}
