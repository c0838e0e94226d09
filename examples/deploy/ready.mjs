/** Exit 0 when the gateway on this machine is ready for requests, 1 when it is not. For images, which may have no curl. */
const url = process.argv[2] ?? 'http://127.0.0.1:4319/readyz';
const ready = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(4_000) }).then(
  ({ ok }) => ok,
  () => false,
);
process.exitCode = ready ? 0 : 1;
