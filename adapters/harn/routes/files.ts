/** Files of local workspaces. */
import { Fault } from '../../../src/index.ts';
import type { Desk, Routes } from '../call.ts';

export function fileRoutes(_desk: Desk): Pick<Routes, 'readWorkspaceFile' | 'writeWorkspaceFile'> {
  return {
    readWorkspaceFile: async () => {
      throw new Fault('not_implemented', 'workspace files are not served here');
    },
    writeWorkspaceFile: async () => {
      throw new Fault('not_implemented', 'workspace files are not served here');
    },
  };
}
