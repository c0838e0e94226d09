/** Writes `tollbridge.schema.json`, the schema of the configuration that is shipped for editors. */
import { writeFile } from 'node:fs/promises';
import { adapters } from '../../../adapters/index.ts';
import { configSchema } from '../../../src/runtime/config/schema.ts';

await writeFile(
  new URL('../../../tollbridge.schema.json', import.meta.url),
  `${JSON.stringify(configSchema(adapters), undefined, 2)}\n`,
);
