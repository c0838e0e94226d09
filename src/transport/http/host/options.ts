/** What can be set on the port: addresses, limits, times, and its certificate. */
import type { Logger } from '../../../ports/index.ts';

export interface HttpHostOptions {
  /** Interface to listen on. */
  readonly host?: string;
  /** 0 picks a free port. */
  readonly port?: number;
  /** The address clients use, where that is not the one listened on. */
  readonly publicUrl?: string;
  /** Names beyond the loopback ones that the Host header may carry. */
  readonly allowedHosts?: readonly string[];
  /** Origins beyond our own whose pages may use the gateway. */
  readonly allowedOrigins?: readonly string[];
  /** No request body may be longer, whatever a door allows. */
  readonly bodyLimit?: number;
  readonly headerLimit?: number;
  /** Connections open at once: in all, and from one address that is not this machine. */
  readonly connections?: number;
  readonly connectionsPerAddress?: number;
  /** How long a peer may take to send its headers, and its whole request. */
  readonly headersTimeoutMs?: number;
  readonly requestTimeoutMs?: number;
  readonly keepAliveMs?: number;
  /** How long open requests have to finish when closing. */
  readonly graceMs?: number;
  /** How long it goes on accepting connections after it says that it leaves. */
  readonly leaveMs?: number;
  /** Every door behind this port authenticates. Without it only loopback interfaces are listened on. */
  readonly authenticated?: boolean;
  /** The port speaks TLS itself, and nothing else. */
  readonly tls?: TlsOptions;
  readonly requestId: () => string;
  readonly log: Logger;
}

export interface TlsOptions extends TlsSecrets {
  /** `max-age` of the HSTS header in seconds; not sent for loopback names. */
  readonly hstsSeconds?: number;
}

/** Certificate and key of the TLS handshake. */
export interface TlsSecrets {
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
  readonly minVersion?: 'TLSv1.2' | 'TLSv1.3';
}
