/** Checks whether the port is free, and whether a tollbridge has it if not. */
import { get as getPlainly, type IncomingMessage } from 'node:http';
import { get as getSecurely } from 'node:https';
import { createServer } from 'node:net';
import { bad, type Finding, ok, warn } from './finding.ts';

const ASK_MS = 1_000;

export async function lookAtPort(host: string, port: number, tls = false): Promise<readonly Finding[]> {
  if (port === 0) return [ok('port', 'any that is free')];
  const code = await tryListening(host, port);
  if (code === undefined) return [ok('port', `${port} on ${host} is free`)];
  if (code === 'EADDRINUSE') {
    if (await isOurs(host, port, tls)) return [ok('port', `a tollbridge already listens on ${host}:${port}`)];
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

/**
 * Looks for our name in `/openapi.json`, which is public; nothing secret is sent, so the certificate is not checked.
 */
async function isOurs(host: string, port: number, tls: boolean): Promise<boolean> {
  return await new Promise((resolve) => {
    const answered = (response: IncomingMessage) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
        if (text.length < 2_000) return;
        resolve(/tollbridge/i.test(text));
        response.destroy();
      });
      response.on('end', () => resolve(/tollbridge/i.test(text)));
    };
    const at = { host, port, path: '/openapi.json', timeout: ASK_MS };
    const request = tls ? getSecurely({ ...at, rejectUnauthorized: false }, answered) : getPlainly(at, answered);
    request
      .on('timeout', () => request.destroy())
      .on('error', () => resolve(false))
      .on('close', () => resolve(false));
  });
}
