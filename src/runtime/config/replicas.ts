/** The `replicas` section: where this process takes requests that others hand on, and what proves that they come from them. */
import { type Where, wrong } from './document.ts';
import type { ConfigFile } from './shape.ts';

export interface ReplicasConfig {
  /** Absent: a socket in the data directory. */
  readonly tcp?: { readonly host: string; readonly port: number; readonly address?: string };
  /** The name of the shared secret. Absent: it is derived from the keys in the data directory. */
  readonly secret?: string;
}

export function replicasOf(section: ConfigFile['replicas'], where: Where): ReplicasConfig {
  const { listen, address, secret } = section ?? {};
  if (listen === undefined && address !== undefined)
    throw wrong(where(['replicas', 'address']), 'replicas.address: say where to listen, in replicas.listen');
  const tcp = listen === undefined ? undefined : hostAndPort(listen, where, 'listen');
  if (address !== undefined) hostAndPort(address, where, 'address');
  return {
    ...(tcp && { tcp: { ...tcp, ...(address !== undefined && { address }) } }),
    ...(secret !== undefined && { secret }),
  };
}

const HOST_PORT = /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9_.-]+):(\d{1,5})$/;

function hostAndPort(text: string, where: Where, member: string): { readonly host: string; readonly port: number } {
  const [, host, port] = HOST_PORT.exec(text) ?? [];
  if (!host || Number(port) > 65_535)
    throw wrong(where(['replicas', member]), `replicas.${member}: ${text} is no address; write host:port`);
  return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) };
}
