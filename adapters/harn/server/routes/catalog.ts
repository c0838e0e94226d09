/** The providers and models behind this gateway, exactly as its agents report them. */
import { PROVIDER_CATALOG, PROVIDER_CATALOG_VERSION } from '../../../../mappings/harn-2026-10-11.ts';
import { isObject, type Json, type JsonObject, VERSION } from '../../../../src/index.ts';
import type { NewerWire } from '../../revisions/schemas-2026-10-11.ts';
import type { RouteContext, Routes } from '../call.ts';

const LISTS = ['providers', 'models', 'aliases', 'variants', 'families'] as const;
type Entry = Record<string, Json>;
type Lists = Record<(typeof LISTS)[number], Entry[]>;

export function catalogRoutes({ bridge }: RouteContext): Pick<Routes, 'getProviderCatalog'> {
  return {
    getProviderCatalog: async ({ actor }) => {
      const lists: Lists = { providers: [], models: [], aliases: [], variants: [], families: [] };
      for (const { name, about } of await bridge.agents(actor)) merge(lists, name, about.catalog);
      const body: NewerWire<'ProviderCatalog'> = {
        schema_version: PROVIDER_CATALOG_VERSION,
        schema: PROVIDER_CATALOG,
        generated_by: `tollbridge ${VERSION}`,
        ...lists,
        qc_defaults: {},
      };
      return { body };
    },
  };
}

/** An entry that several agents report stands once, with the names of all of them. */
function merge(lists: Lists, agent: string, catalog: JsonObject | undefined): void {
  for (const list of LISTS) {
    const reported = catalog?.[list];
    for (const entry of Array.isArray(reported) ? reported : []) {
      if (!isObject(entry)) continue;
      const text = JSON.stringify(entry);
      const known = lists[list].find(({ agents: _, ...rest }) => JSON.stringify(rest) === text);
      if (known) known.agents = [...(known.agents as string[]), agent];
      else lists[list].push({ ...(entry as JsonObject), agents: [agent] });
    }
  }
}
