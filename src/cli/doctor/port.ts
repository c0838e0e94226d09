/** Whether we could listen where we are told to, and who does if we cannot. */
import { createServer } from 'node:net';
import { bad, type Finding, ok, warn } from './finding.ts';

const ASK_MS = 1_000;

export async function lookAtPort(host: string, port: number): Promise<readonly Finding[]> {
  if (port === 0) return [ok('port', 'any that is free')];
  const code = await tryListening(host, port);
  if (code === undefined) return [ok('port', `${port} on ${host} is free`)];
  if (code === 'EADDRINUSE') {
    if (await isOurs(host, port)) return [ok('port', `a tollbridge already listens on ${host}:${port}`)];
    return [
      bad(
        'port',
        `${port} on ${host} is taken by another program`,
        'stop that program, or choose another port: --port, or listen.port in tollbridge.yaml',
      ),
    ];
  }
  if (code === 'EACCES') {
    return [bad('port', `${port} on ${host} may not be used by this user`, 'choose a port above 1023')];
  }
  if (code === 'EADDRNOTAVAIL') {
    return [bad('port', `${host} is not an address of this machine`, 'listen on 127.0.0.1')];
  }
  return [warn('port', `${port} on ${host} could not be tried: ${code}`, 'try it: tollbridge serve')];
}

function tryListening(host: string, port: number): Promise<string | undefined> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', (cause: NodeJS.ErrnoException) => resolve(cause.code ?? cause.message));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}

/** Its own description says so; anyone may read that. */
async function isOurs(host: string, port: number): Promise<boolean> {
  const name = host.includes(':') ? `[${host}]` : host;
  try {
    const answer = await fetch(`http://${name}:${port}/openapi.json`, {
      redirect: 'manual',
      signal: AbortSignal.timeout(ASK_MS),
    });
    return /tollbridge/i.test((await answer.text()).slice(0, 2_000));
  } catch {
    return false;
  }
}
