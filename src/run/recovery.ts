/**
 * What a run that goes on behind a crash says of it. The log counts how often: a run whose own work kills its server must
 * not kill it at every start for ever.
 */
import type { Part } from '../part/part.ts'

/** How often in a row a run goes on without getting anywhere before it is ended instead. */
export const mostRecoveries = 3

export const recovered: Extract<Part, { type: 'warning' }> = {
  type: 'warning',
  code: 'recovered',
  message: 'The server had stopped while the run was active; it goes on from its log.',
}

/** A server that shuts down in order is no crash: what it leaves is not counted. */
export const handedOn: Extract<Part, { type: 'warning' }> = {
  type: 'warning',
  code: 'server-stopped',
  message: 'The server was shut down; the run goes on with its next start.',
}
