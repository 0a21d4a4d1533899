/**
 * Warnings that a run records about itself. The log counts those of a crash, so that a run which crashes its server
 * does not crash it at every start.
 */
import type { Part } from '../part/part.ts'

/** How often in a row a run is recovered without progress. After that it is ended. */
export const mostRecoveries = 3

export const recovered: Extract<Part, { type: 'warning' }> = {
  type: 'warning',
  code: 'recovered',
  message: 'The server stopped while the run was active. The run continues from its log.',
}

/** An orderly shutdown is not a crash, so this one is not counted. */
export const handedOn: Extract<Part, { type: 'warning' }> = {
  type: 'warning',
  code: 'server-stopped',
  message: 'The server was shut down. The run continues elsewhere, or at the next start.',
}

/** The code of the warning with which a fork goes on. */
export const forkedCode = 'forked'

/** What `history: server` told the model is not the whole conversation. */
export const historyCut: Extract<Part, { type: 'warning' }> = {
  type: 'warning',
  code: 'history-cut',
  message: 'The conversation is too long to be sent to the model whole. Its oldest turns were left out.',
}
