/** Our side, as it is run for real: rules, durable log and receipts. Prints its port; `SIGTERM` ends it in order. */
import { FIRST_RULES } from '../../src/config.ts';
import { openMcpGateway } from '../../test/support/mcp-gateway.ts';

const RULES = `${FIRST_RULES}\n- { id: the-rest, when: { kind: tool }, then: allow }`;
const gateway = await openMcpGateway({ upstreams: JSON.parse(process.argv.at(-1) as string), rules: RULES });
process.once('SIGTERM', () => void gateway.close().then(() => process.exit(0)));
console.log(new URL(gateway.url).port);
