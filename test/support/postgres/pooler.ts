/**
 * A connection pooler in transaction mode, as far as its clients can tell: each transaction of a client runs on whichever of a few
 * connections to the server is free, the longest unused first, so whatever a client leaves on a connection is another's from then on.
 * Parameters that a client asks for when it connects are refused unless the pooler knows them, as PgBouncer does.
 */
import { connect, createServer, type Socket } from 'node:net';
import { PASSWORD, USER } from './server.ts';

export interface Pooler {
  readonly port: number;
  /** How often a client's transaction ran on another connection than the one before it. */
  readonly moves: () => number | Promise<number>;
  close(): Promise<void>;
}

interface Server {
  readonly socket: Socket;
  client: Client | undefined;
}
interface Client {
  readonly socket: Socket;
  server: Server | undefined;
  last: Server | undefined;
  /** Answers `ready` that are still to come. */
  due: number;
  /** Messages were sent that no `sync` has ended yet. */
  halfway: boolean;
  held: Buffer[];
}

const SSL_REQUEST = 80877103;
const KNOWN = ['user', 'database', 'client_encoding', 'application_name'];

export async function startPooler(
  to: number,
  database: string,
  size: number,
  ignored: readonly string[] = [],
): Promise<Pooler> {
  const clients = new Set<Client>();
  const free: Server[] = [];
  const waiting: Client[] = [];
  let moves = 0;
  for (let made = 0; made < size; made += 1) free.push(await open());

  /** A connection that is ready for its first transaction. */
  function open(): Promise<Server> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port: to, host: '127.0.0.1', noDelay: true });
      const server: Server = { socket, client: undefined };
      let ready = false;
      socket.on('error', reject);
      socket.on('connect', () => socket.write(startup({ user: USER, database })));
      const read = messages((type, body, whole) => {
        if (ready) return answer(server, type, body, whole);
        if (type === 'R' && body.readInt32BE(0) === 3) socket.write(message('p', Buffer.from(`${PASSWORD}\0`)));
        if (type === 'E') reject(new Error(body.toString()));
        ready = type === 'Z';
        if (ready) resolve(server);
      });
      socket.on('data', read);
      socket.on('close', () => server.client?.socket.destroy());
    });
  }

  function answer(server: Server, type: string, body: Buffer, whole: Buffer): void {
    const { client } = server;
    client?.socket.write(whole);
    if (!client || type !== 'Z') return;
    client.due -= 1;
    if (client.due > 0 || client.halfway || String.fromCharCode(body[0]!) !== 'I') return;
    client.server = undefined;
    server.client = undefined;
    free.push(server);
    serve();
  }

  function serve(): void {
    while (free.length > 0 && waiting.length > 0) {
      const client = waiting.shift()!;
      const server = free.shift()!;
      if (client.last && client.last !== server) moves += 1;
      client.server = server;
      client.last = server;
      server.client = client;
      for (const bytes of client.held.splice(0)) server.socket.write(bytes);
    }
  }

  function ask(client: Client, type: string, whole: Buffer): void {
    if (type === 'X') return void client.socket.end();
    if (type === 'Q' || type === 'S') client.due += 1;
    client.halfway = type !== 'Q' && type !== 'S';
    if (client.server) return void client.server.socket.write(whole);
    client.held.push(whole);
    if (!waiting.includes(client)) waiting.push(client);
    serve();
  }

  function gone(client: Client): void {
    if (!clients.delete(client)) return;
    if (waiting.includes(client)) waiting.splice(waiting.indexOf(client), 1);
    const { server } = client;
    if (!server) return;
    // In the middle of a transaction: the connection is of no use to others.
    server.client = undefined;
    server.socket.destroy();
    open().then((fresh) => {
      free.push(fresh);
      serve();
    });
  }

  const pooler = createServer({ noDelay: true }, (socket) => {
    const client: Client = { socket, server: undefined, last: undefined, due: 0, halfway: false, held: [] };
    clients.add(client);
    socket.on('error', () => undefined);
    socket.on('close', () => gone(client));
    let begun = false;
    let early: Buffer = Buffer.alloc(0);
    const read = messages((type, _, whole) => ask(client, type, whole));
    socket.on('data', (bytes) => {
      if (begun) return read(bytes);
      early = Buffer.concat([early, bytes]);
      if (early.length < 8 || early.length < early.readInt32BE(0)) return;
      const first = early.subarray(0, early.readInt32BE(0));
      early = early.subarray(first.length);
      if (first.readInt32BE(4) === SSL_REQUEST) return void socket.write('N');
      const words = first.toString('utf8', 8).split('\0');
      const foreign = words.find((word, at) => at % 2 === 0 && word !== '' && ![...KNOWN, ...ignored].includes(word));
      if (foreign)
        return void socket.end(
          message('E', Buffer.from(`SFATAL\0C08P01\0Munsupported startup parameter: ${foreign}\0\0`)),
        );
      begun = true;
      socket.write(Buffer.concat([message('R', Buffer.alloc(4)), message('Z', Buffer.from('I'))]));
      read(early);
    });
  });
  await new Promise<void>((resolve) => pooler.listen(0, '127.0.0.1', resolve));
  return {
    port: (pooler.address() as { port: number }).port,
    moves: () => moves,
    async close() {
      const servers = [...free, ...[...clients].flatMap(({ server }) => server ?? [])];
      for (const client of [...clients]) {
        clients.delete(client);
        client.socket.destroy();
      }
      for (const { socket } of servers) socket.destroy();
      await new Promise((resolve) => pooler.close(resolve));
    },
  };
}

/** Hands over each message as soon as all of it is there. */
function messages(each: (type: string, body: Buffer, whole: Buffer) => void): (bytes: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  return (bytes) => {
    rest = rest.length === 0 ? bytes : Buffer.concat([rest, bytes]);
    while (rest.length >= 5 && rest.length > rest.readInt32BE(1)) {
      const whole = rest.subarray(0, rest.readInt32BE(1) + 1);
      rest = rest.subarray(whole.length);
      each(String.fromCharCode(whole[0]!), whole.subarray(5), whole);
    }
  };
}

function message(type: string, body: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}

function startup(parameters: Readonly<Record<string, string>>): Buffer {
  const text = Object.entries(parameters).map(([name, value]) => `${name}\0${value}\0`);
  const body = Buffer.from(`${text.join('')}\0`);
  const head = Buffer.alloc(8);
  head.writeInt32BE(body.length + 8);
  head.writeInt32BE(196608, 4);
  return Buffer.concat([head, body]);
}
