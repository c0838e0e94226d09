/** Private files in the database: opened when they are first used, once for all users in this process, closed with the last of them. */
import { type DatabaseFiles, isDatabase, openDatabaseFiles, type StoreLocation } from '../../store/index.ts';

export function sharedFilesOf(store: () => StoreLocation): () => Promise<DatabaseFiles> {
  let current: { readonly files: Promise<DatabaseFiles>; users: number } | undefined;
  return async () => {
    const location = store();
    if (!isDatabase(location)) throw new Error('a log in a file shares no files');
    current ??= { files: openDatabaseFiles(location), users: 0 };
    const mine = current;
    mine.users += 1;
    const leave = async (): Promise<void> => {
      mine.users -= 1;
      if (mine.users > 0) return;
      if (current === mine) current = undefined;
      await (await mine.files).close();
    };
    try {
      const files = await mine.files;
      let left: Promise<void> | undefined;
      return {
        ...files,
        close() {
          left ??= leave();
          return left;
        },
      };
    } catch (thrown) {
      if (current === mine) current = undefined;
      throw thrown;
    }
  };
}
