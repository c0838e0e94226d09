/** Tools mounted behind the gateway. */
import { Fault } from '../../../src/index.ts';
import type { Desk, Routes } from '../call.ts';

export function toolRoutes(_desk: Desk): Pick<Routes, 'listTools' | 'getTool'> {
  return {
    listTools: async () => {
      throw new Fault('not_implemented', 'tools are not listed yet');
    },
    getTool: async () => {
      throw new Fault('not_implemented', 'tools are not listed yet');
    },
  };
}
