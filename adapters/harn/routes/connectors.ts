/** Deliveries from outside. */
import { Fault } from '../../../src/index.ts';
import type { Desk, Routes } from '../call.ts';

export function connectorRoutes(_desk: Desk): Pick<Routes, 'deliverToConnector'> {
  return {
    deliverToConnector: async () => {
      throw new Fault('not_implemented', 'deliveries are not taken yet');
    },
  };
}
