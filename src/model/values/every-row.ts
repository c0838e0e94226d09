/** Rows of a list that is read in pages, one after the other: no reader has to know where a page ends. */

const PAGE = 200;

export interface Paging {
  readonly limit: number;
  readonly after?: string;
}

/** A page of the store, or one of the bridge, which names the next. */
type Page<T> = readonly T[] | { readonly data: readonly T[]; readonly next: string | undefined };

export async function* everyRow<T extends { readonly id: string }>(
  list: (paging: Paging) => Promise<Page<T>>,
): AsyncGenerator<T, void, undefined> {
  let after: string | undefined;
  do {
    const page = await list({ limit: PAGE, ...(after && { after }) });
    const rows = 'data' in page ? page.data : page;
    yield* rows;
    after = 'data' in page ? page.next : rows.length < PAGE ? undefined : rows.at(-1)?.id;
  } while (after);
}
