/** An agent that writes whatever bytes its editor tells it to, and tells its editor every line it gets. */
import { createInterface } from 'node:readline';

const send = (frame) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...frame })}\n`);

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'initialize') {
    send({ id, result: { protocolVersion: 1, agentInfo: { name: 'puppet', version: '1' } } });
  } else if (method === 'session/new') send({ id, result: { sessionId: params.cwd.endsWith('/two') ? 's2' : 's1' } });
  else if (method === '_test/say') {
    process.stdout.write(Buffer.from(params.bytes, 'base64'));
    send({ method: '_test/said', params: { n: params.n } });
  } else if (method === '_test/flood') {
    process.stdout.write(`{"jsonrpc":"2.0","method":"_x","params":"${'x'.repeat(params.bytes)}"}\n`);
    send({ method: '_test/said', params: { n: params.n } });
  } else if (method === '_test/die') {
    process.stdout.write(Buffer.from(params.bytes, 'base64'), () => process.exit(3));
  } else send({ method: '_test/heard', params: { line } });
});
