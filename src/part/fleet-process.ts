/** What a fleet tells of one of its processes. */
export interface FleetProcess {
  id: string
  /** The process that asks. */
  self: boolean
  host?: string
  pid?: number
  version?: string
  /** Where it can be reached, if it serves. */
  url?: string
  /** ms since its last beat, by the clock of the store. Of the process that asks: since the store has answered one. */
  beatAgeMs: number
  /** Its beat is recent. The runs of a process that is not alive go on elsewhere. */
  alive: boolean
  /** It hands its runs over and takes no more. */
  draining: boolean
  /** The number of active runs that it owns. */
  runs: number
}

/** What a process tells the others of itself. What is left out stays as it was. */
export type Introduction = Partial<Pick<FleetProcess, 'version' | 'url' | 'draining'>>
