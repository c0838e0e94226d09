/**
 * The addresses of one peer, in the order they are tried: the one a session was at before, then as configured, those that could not
 * be reached a moment ago last. Another address is tried only while no address can have the work: nothing is ever handed over twice.
 */
import { type AddressState, asFault, Fault } from '../../../../src/index.ts';
import type { BackendDeps, PeerSettings } from '../config.ts';
import { NotReached } from '../faults.ts';
import { connect, type PeerConnection } from './connect.ts';

export interface Address {
  readonly settings: PeerSettings;
  connection(): Promise<PeerConnection>;
  /** Connects again: reads the card anew. */
  reconnect(): Promise<PeerConnection>;
}

export interface Addresses {
  readonly first: Address;
  readonly count: number;
  /** The first address that can be reached and was not tried, with its connection. Rejects, naming all, when there is none. */
  reach(
    tried: ReadonlySet<Address>,
    how?: { readonly preferred?: number | undefined; readonly anew?: boolean },
  ): Promise<readonly [Address, PeerConnection]>;
  /** Could not be reached: it is tried last for a while. */
  failed(address: Address, cause: Error): void;
  /** Which of them answered when they were last used; with `anew`, all are used now. */
  states(anew: boolean): Promise<readonly AddressState[]>;
}

const AVOIDED_MS = 30_000;

export function createAddresses(all: readonly PeerSettings[], deps: BackendDeps): Addresses {
  const addresses = all.map((settings) => addressOf(settings, deps));
  const avoidedUntil = new Map<Address, number>();
  const noticed = new Map<Address, Omit<AddressState, 'address'>>();
  const isDown = (address: Address) => (avoidedUntil.get(address) ?? 0) > performance.now();

  function order(preferred: number | undefined): readonly Address[] {
    const rank = (address: Address) =>
      (isDown(address) ? addresses.length + 1 : 0) +
      (address.settings.index === preferred ? 0 : 1 + address.settings.index);
    return [...addresses].sort((one, other) => rank(one) - rank(other));
  }

  function failed(address: Address, cause: Error): void {
    const { name, base } = address.settings;
    if (!isDown(address))
      deps.log.warn({ err: cause, peer: name, host: base.host }, 'a peer cannot be reached at one of its addresses');
    avoidedUntil.set(address, performance.now() + AVOIDED_MS);
    notice(address, { state: 'unavailable', reason: cause.message });
  }

  /** A state lasts from when it was first noticed. */
  function notice(address: Address, now: Pick<AddressState, 'state' | 'reason'>): void {
    const { state, since = deps.clock.now() } = noticed.get(address) ?? {};
    noticed.set(address, { ...now, since: state === now.state ? since : deps.clock.now() });
  }

  return {
    first: addresses[0] as Address,
    count: addresses.length,
    failed,
    async states(anew) {
      const use = async (address: Address) =>
        await address.reconnect().then(
          () => notice(address, { state: 'ready' }),
          (cause) => notice(address, { state: 'unavailable', reason: asFault(cause).message }),
        );
      if (anew) await Promise.all(addresses.map(use));
      return addresses.map((address) => ({
        address: address.settings.base.host,
        ...(noticed.get(address) ?? { state: 'unknown' }),
      }));
    },
    async reach(tried, { preferred, anew = false } = {}) {
      const missed: string[] = [...tried].map(({ settings }) => settings.base.host);
      for (const address of order(preferred)) {
        if (tried.has(address)) continue;
        try {
          const connection = await (anew ? address.reconnect() : address.connection());
          if (avoidedUntil.delete(address))
            deps.log.info({ peer: address.settings.name, host: address.settings.base.host }, 'a peer is reached again');
          notice(address, { state: 'ready' });
          return [address, connection];
        } catch (cause) {
          if (cause instanceof NotReached) failed(address, cause);
          if (!(cause instanceof NotReached) || addresses.length === 1) throw cause;
          missed.push(address.settings.base.host);
        }
      }
      const { name } = (addresses[0] as Address).settings;
      throw new Fault(
        'upstream_unavailable',
        `${name} cannot be reached at any of its addresses: ${missed.join(', ')}`,
      );
    },
  };
}

function addressOf(settings: PeerSettings, deps: BackendDeps): Address {
  let reached: Promise<PeerConnection> | undefined;
  function reconnect(): Promise<PeerConnection> {
    const trying = connect(settings, deps);
    reached = trying;
    trying.catch(() => {
      if (reached === trying) reached = undefined;
    });
    return trying;
  }
  return { settings, reconnect, connection: () => reached ?? reconnect() };
}
